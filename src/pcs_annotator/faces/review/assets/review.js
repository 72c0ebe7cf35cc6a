// The review page: keys, saving without reloading, focus and announcements. Every form and link works without it.
"use strict";

const PULSE = 5000; // milliseconds between looks at what a fit in the background has changed
const byId = (id) => document.getElementById(id);
const all = (selector) => [...document.querySelectorAll(selector)];
let busy = false;
let shownAt = performance.now();
let hiddenSince = document.hidden ? shownAt : null;

// ---- what the status line says -------------------------------------------------------------------------------------

function say(message, kind = "") {
  const line = byId("status");
  line.className = kind;
  line.textContent = message;
}

// ---- asking the server ---------------------------------------------------------------------------------------------

async function ask(url, body) {
  const options = { headers: { Accept: "application/json" }, credentials: "same-origin" };
  if (body) Object.assign(options, { method: "POST", body: new URLSearchParams(body) });
  let response;
  try {
    response = await fetch(url, options);
  } catch {
    throw new Error("Not saved: the server does not answer. Is pcs review still running? Try again.");
  }
  const type = response.headers.get("content-type") || "";
  const answer = type.includes("json") ? await response.json() : {};
  if (answer.error) throw new Error(answer.error.message);
  if (!response.ok && !answer.main) throw new Error(`Not saved: the server answered ${response.status}. Reload the page.`);
  return answer;
}

// One request at a time: a key pressed meanwhile would be about a row that nobody has seen.
async function act(url, body, remember = true) {
  if (busy) return;
  busy = true;
  document.body.setAttribute("aria-busy", "true");
  if (body) say("Saving …", "saving");
  try {
    const answer = await ask(url, body);
    show(answer);
    if (answer.message) say(answer.message, answer.kind || "");
    else if (!body) say("");
    if (remember && answer.address && answer.address !== here()) {
      history[body ? "replaceState" : "pushState"](null, "", answer.address); // so that a reload shows the same
    }
  } catch (error) {
    say(error.message, "problem");
  } finally {
    busy = false;
    document.body.removeAttribute("aria-busy");
  }
}

const here = () => location.pathname + location.search;

function show(answer) {
  if (answer.progress) put("progress", answer.progress);
  if (!answer.main) return;
  put("main", answer.main);
  if (answer.title) document.title = answer.title;
  for (const link of all("nav[aria-label='Pages'] a")) {
    if (link.getAttribute("href") === answer.place) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  shownAt = performance.now();
  hiddenSince = document.hidden ? shownAt : null;
  paintKeys();
  unfold();
  openPassages();
  window.scrollTo(0, 0);
  start();
}

// The row has the focus or, where there are several variables, the first of them.
function start() {
  (document.querySelector("fieldset.variable") || byId("item") || byId("main")).focus({ preventScroll: true });
}

// Votes stay folded, or unfolded, from row to row.
function unfold() {
  if (byId("answers")) byId("answers").open = votesOpen;
}

// The server escapes everything that is not ours, and the policy runs no inline script.
function put(id, html) {
  byId(id).innerHTML = html;
}

// ---- time per item, without the time in which the page was not visible ------------------------------------------------

document.addEventListener("visibilitychange", () => {
  const now = performance.now();
  if (document.hidden) hiddenSince = now;
  else if (hiddenSince !== null) {
    shownAt += now - hiddenSince;
    hiddenSince = null;
  }
});
const secondsShown = () => ((performance.now() - shownAt) / 1000).toFixed(2);

// ---- forms and links -------------------------------------------------------------------------------------------------

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.method === "dialog") return;
  const values = Object.fromEntries(new FormData(form, event.submitter));
  if (form.method === "get") {
    const url = `${new URL(form.action).pathname}?${new URLSearchParams(filled(values))}`;
    event.preventDefault();
    form.closest("dialog")?.close();
    act(url);
  } else if (form.dataset.act) {
    event.preventDefault();
    if (form.dataset.act === "verdict") values.seconds = secondsShown();
    if (form.dataset.act === "undo") values.here = here();
    form.closest("dialog")?.close();
    act(new URL(form.action).pathname, values);
  }
});
const filled = (values) => Object.entries(values).filter(([, value]) => value !== "");

document.addEventListener("click", (event) => {
  for (const menu of all("details.menu[open]")) if (!menu.contains(event.target)) menu.removeAttribute("open");
  const opener = event.target.closest("[data-opens]");
  if (opener) {
    event.preventDefault();
    byId(opener.dataset.opens)?.showModal();
    return;
  }
  const link = event.target.closest("a[data-go]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  link.closest("details.menu")?.removeAttribute("open");
  act(link.getAttribute("href"));
});
window.addEventListener("popstate", () => act(here(), null, false));

// ---- keys ------------------------------------------------------------------------------------------------------------

const STORED = `pcs-keys-${document.body.dataset.labels}`;
let own = stored(STORED, {});
let single = stored("pcs-single-keys", true);
let votesOpen = stored("pcs-votes-open", false);
const keyOf = (button) => own[button.value] ?? button.dataset.key;

// A browser may forbid to store anything; then keys last until the page is left.
function stored(name, usual) {
  try {
    return JSON.parse(localStorage.getItem(name)) ?? usual;
  } catch {
    return usual;
  }
}
function store(name, value) {
  try {
    localStorage.setItem(name, JSON.stringify(value));
  } catch {
    say("This browser keeps no keys: they last until you leave the page.");
  }
}

function paintKeys() {
  for (const button of all("button[data-key]")) {
    const key = keyOf(button);
    const cap = button.querySelector("kbd");
    if (cap) cap.textContent = key.toUpperCase();
    if (key) button.setAttribute("aria-keyshortcuts", key.toUpperCase());
    else button.removeAttribute("aria-keyshortcuts");
  }
}

const COMMANDS = {
  enter: () => (byId("save") || document.querySelector("button[data-proposed]"))?.click(),
  s: () => byId("skip")?.click(),
  u: () => byId("undo")?.requestSubmit(),
  g: () => openWith("go-to"),
  n: () => focusOn("note"),
  v: () => byId("answers")?.querySelector("summary").click(),
  "?": () => byId("keys").showModal(),
};

function openWith(id) {
  byId(id).showModal();
  byId(id).querySelector("input").select();
}
function focusOn(id) {
  byId(id)?.focus();
  byId(id)?.select?.();
}

// With an Arabic or Cyrillic layout, the key in the place of S means S.
function keysOf(event) {
  const place = /^(?:Key|Digit)(.)$/.exec(event.code);
  return place && event.key > "~" ? [event.key.toLowerCase(), place[1].toLowerCase()] : [event.key.toLowerCase()];
}

document.addEventListener("keydown", (event) => {
  if (event.isComposing) return;
  const at = document.activeElement;
  const writing = at.matches("input:not([type=radio], [type=checkbox]), textarea, select");
  if (event.key === "Escape" && writing && !at.closest("dialog")) return leave(at);
  if (event.key === "Enter" && at.id === "note" && !event.shiftKey) {
    event.preventDefault();
    return leave(at);
  }
  if (single && event.key === "Enter" && at.matches("[data-filter]")) return handle(event, () => chooseFound(at));
  if (document.querySelector("dialog[open]")) return;
  if (single && event.key === "Tab" && toVariable(event.shiftKey ? -1 : 1)) return event.preventDefault();
  if (writing) return;
  const keys = keysOf(event);
  if ((event.ctrlKey || event.metaKey) && keys.includes("z")) return handle(event, COMMANDS.u);
  if (single && passageKey(event)) return event.preventDefault();
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.shiftKey && event.key === "ArrowLeft") return handle(event, () => byId("back")?.click());
  if (event.shiftKey && event.key === "ArrowRight") return handle(event, () => byId("forth")?.click());
  if (!single) return;
  if (event.key === "Enter" && at.matches("a, button, summary")) return; // it presses what has the focus
  for (const key of keys) {
    const option = currentVariable()?.querySelector(`input[data-key="${CSS.escape(key)}"]`);
    if (option) return handle(event, () => choose(option));
    const label = all("button[data-key]").find((button) => keyOf(button) === key);
    if (label) return handle(event, () => label.click());
    if (Object.hasOwn(COMMANDS, key)) return handle(event, COMMANDS[key]);
  }
});

// ---- several variables: keys are about the one in focus ------------------------------------------------------------------

const variables = () => all("fieldset.variable");
const currentVariable = () => document.activeElement.closest("fieldset.variable") || variables()[0];

// Go to another variable, and from the last one to the button that saves; return whether there is one.
function toVariable(by) {
  const known = [...variables(), byId("save")].filter(Boolean);
  if (known.length < 2) return false;
  const at = known.findIndex((one) => one.contains(document.activeElement));
  const next = at < 0 ? (by > 0 ? known[0] : null) : known[at + by];
  if (!next) return false;
  next.focus({ preventScroll: true });
  next.scrollIntoView({ block: "nearest" });
  return true;
}

function choose(option) {
  if (option.type === "radio") option.checked = true;
  else option.checked = !option.checked;
  option.dispatchEvent(new Event("change", { bubbles: true }));
  if (option.type === "radio") toVariable(1);
}

// “None” and “can’t tell” exclude the labels of a variable that may have several.
document.addEventListener("change", (event) => {
  const variable = event.target.closest("fieldset.variable");
  if (!variable || !variable.querySelector("[type=checkbox]") || !event.target.checked) return;
  for (const other of variable.querySelectorAll("input:checked")) if (other.type !== event.target.type) other.checked = false;
});

document.addEventListener("input", (event) => {
  if (!event.target.matches("[data-filter]")) return;
  const wanted = event.target.value.toLowerCase();
  let heading = null;
  for (const one of event.target.closest("fieldset").querySelectorAll(".options > *")) {
    if (one.matches(".parent")) {
      heading = one;
      heading.hidden = true;
      continue;
    }
    const value = one.querySelector("input").value;
    one.hidden = !one.matches(".aside") && !(one.textContent + value).toLowerCase().includes(wanted);
    if (one.matches(".aside")) heading = null;
    if (heading && !one.hidden) heading.hidden = false;
  }
});
document.addEventListener("invalid", (event) => event.target.closest("fieldset")?.scrollIntoView({ block: "nearest" }), true);

// Enter in the box to search takes the first label that was found.
function chooseFound(field) {
  const found = [...field.closest("fieldset").querySelectorAll(".option:not(.aside)")].find((one) => !one.hidden);
  if (found) choose(found.querySelector("input"));
}

// A key that is held down counts once.
function handle(event, command) {
  event.preventDefault();
  if (!event.repeat) command();
}
function leave(field) {
  field.blur();
  start();
}

// ---- other keys for labels, kept in this browser ------------------------------------------------------------------------

byId("keys").addEventListener("change", (event) => {
  const field = event.target;
  if (field.id === "single-keys") {
    single = field.checked;
    store("pcs-single-keys", single);
  } else if (field.dataset.label !== undefined) remap(field);
});
byId("keys").addEventListener("close", start);

function remap(field) {
  const key = field.value.trim().toLowerCase();
  const others = all("#keys input[data-label]").filter((one) => one !== field).map((one) => one.value.toLowerCase());
  const taken = Object.hasOwn(COMMANDS, key) || others.includes(key) || key.length > 1;
  byId("keys-problem").textContent = taken ? `“${key}” is taken: choose another key.` : "";
  if (taken) field.value = (own[field.dataset.label] ?? field.dataset.usual).toUpperCase();
  else own[field.dataset.label] = key;
  store(STORED, own);
  field.value = field.value.toUpperCase();
  paintKeys();
}

for (const field of all("#keys input[data-label]")) field.value = (own[field.dataset.label] ?? field.dataset.usual).toUpperCase();
if (byId("single-keys")) byId("single-keys").checked = single;

// ---- prompts and replies, which are only fetched when they are opened --------------------------------------------------

async function showEvidence(link) {
  try {
    const parts = new DOMParser().parseFromString((await ask(link.getAttribute("href"))).main, "text/html");
    link.parentElement.replaceWith(parts.querySelector(".exchanges"));
  } catch (error) {
    say(error.message, "problem");
  }
}

// ---- what changed while nobody pressed a key -------------------------------------------------------------------------

setInterval(async () => {
  const strip = byId("progress");
  if (busy || document.hidden || strip.contains(document.activeElement) || strip.querySelector("[open]")) return;
  try {
    const answer = await ask(`/progress?queue=${strip.querySelector("[data-queue]")?.dataset.queue ?? ""}`);
    if (!busy && answer.progress && !strip.querySelector("[open]")) put("progress", answer.progress);
  } catch {
    // the next key press will tell
  }
}, PULSE);

document.addEventListener("toggle", (event) => {
  if (event.target.id === "answers" && event.target.open !== votesOpen) store("pcs-votes-open", (votesOpen = event.target.open));
  if (event.target.matches("details.evidence[open]:has(> p > a)")) showEvidence(event.target.querySelector("a"));
  if (event.target.matches("details.menu[open]")) event.target.querySelector("a")?.focus();
}, true);
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") for (const menu of all("details.menu[open]")) menu.removeAttribute("open");
});

paintKeys();
unfold();
openPassages();
if (byId("item")) start();
document.documentElement.classList.add("ready");
