// What is marked in the text, for the variable in hand; it comes before the script of the page, which opens it.
// Positions count whole characters (code points), as the server does; a string of this language counts halves of some.
"use strict";

const SIDES = { "[": ["start", -1], "]": ["start", 1], "{": ["end", -1], "}": ["end", 1] };
const SAID = new Map([[true, "right"], [false, "not right"], [null, "undecided"]]);
const LATER = 250; // milliseconds that types stay after a selection ends, because a tap on one may end it
let markings = [];
let marking = null; // the one whose passages the text shows
let drag = null;
let pressing = false; // a mouse that still selects
let hiding = 0;

class Marking {
  constructor(box) {
    const { text, types, passages } = JSON.parse(box.dataset.marking);
    Object.assign(this, { box, text, types, passages, points: [...text], stops: new Map() });
    this.field = box.querySelector("input[type=hidden]");
    this.values = [...new Set(passages.map((each) => each.value))];
    this.at = this.field ? Math.max(passages.findIndex((each) => each.right === null), 0) : -1;
    this.aside = ""; // “none” or “unsure”
    this.grips = { start: grip("start", this), end: grip("end", this) };
    if (this.field) this.show();
  }

  get now() {
    return this.passages[this.at] ?? null;
  }
  words(passage) {
    return this.points.slice(passage.start, passage.end).join("");
  }
  label() {
    if (this.aside === "unsure") return "";
    const right = this.passages.filter((each) => each.right).map(({ start, end, type }) => ({ start, end, type }));
    const rows = right.sort((one, other) => one.start - other.start || one.end - other.end || (one.type < other.type ? -1 : 1));
    return JSON.stringify(rows.filter((row, at) => JSON.stringify(row) !== JSON.stringify(rows[at - 1])));
  }
  undecided() {
    return this.aside ? 0 : this.passages.filter((each) => each.right === null).length;
  }

  // ---- changes ----

  change(changes) {
    if (!this.now) return;
    Object.assign(this.now, changes);
    if (changes.right) this.aside = "";
    this.show(true);
  }
  decide(right) {
    if (!this.now) return;
    this.change({ right });
    const open = [...this.passages.keys()].filter((at) => this.passages[at].right === null);
    if (open.length) this.go(open.find((at) => at > this.at) ?? open[0]);
  }
  go(at) {
    if (!this.passages[at]) return;
    this.at = at;
    this.show(true);
    byId("text").querySelector(".now")?.scrollIntoView({ block: "nearest" });
    const [list, row] = [this.box.querySelector(".found"), this.box.querySelector("[aria-current]")];
    if (row) list.scrollTop = row.offsetTop - list.clientHeight / 2; // not the whole page: that is where the text is
  }
  add(start, end, type) {
    const passage = { start, end, type, right: true, strength: "s2", sure: "", added: true };
    const same = this.passages.findIndex((each) => each.start === start && each.end === end && each.type === type);
    if (same < 0) this.passages.push(passage);
    this.passages.sort((one, other) => one.start - other.start || one.end - other.end);
    this.at = same < 0 ? this.passages.indexOf(passage) : same;
    this.change({ right: true });
    this.go(this.at);
  }
  addWord() {
    const [starts, ends] = [this.all("word", "start"), this.all("word", "end")];
    const at = Math.max(starts.findIndex((start) => start >= (this.now?.end ?? 0)), 0);
    if (starts.length) this.add(starts[at], ends[at], this.now?.type ?? this.types[0]);
  }
  toggle(aside) {
    this.aside = this.aside === aside ? "" : aside;
    this.passages = this.passages.filter((each) => !each.added || this.aside !== "none");
    if (aside === "none") for (const each of this.passages) each.right = this.aside ? false : null;
    this.at = Math.min(this.at, this.passages.length - 1);
    this.show(true);
  }

  // Where words or characters as people see them begin, or end.
  all(unit, side) {
    const name = unit + side;
    if (!this.stops.has(name)) {
      const stops = [];
      let at = 0;
      for (const { segment, isWordLike } of new Intl.Segmenter(undefined, { granularity: unit }).segment(this.text)) {
        const end = at + [...segment].length;
        if (isWordLike !== false) stops.push(side === "start" ? at : end);
        at = end;
      }
      this.stops.set(name, stops);
    }
    return this.stops.get(name);
  }
  move(side, by, unit = "word") {
    const now = this.now;
    if (!now) return;
    const stops = this.all(unit, side).filter((stop) => (side === "start" ? stop < now.end : stop > now.start));
    const stop = by > 0 ? stops.find((one) => one > now[side]) : stops.findLast((one) => one < now[side]);
    if (stop !== undefined) this.change({ [side]: stop, right: true, changed: true });
  }

  // ---- what is shown ----

  show(changed = false) {
    this.field.value = this.label();
    if (changed) this.warned = false;
    this.showList();
    this.showPanel();
    const counts = [...SAID].map(([right, word]) => [this.passages.filter((each) => each.right === right).length, word]);
    const told = counts.filter(([count]) => count).map(([count, word]) => `${count} ${word}`).join(", ");
    const asides = { none: "No passage in this text.", unsure: "Nothing is said about this text." };
    const now = changed && this.now ? ` In hand: “${this.words(this.now)}”, ${this.now.type}, ${SAID.get(this.now.right)}.` : "";
    const summary = this.box.querySelector(".summary");
    summary.replaceChildren(asides[this.aside] ?? (told ? `${told}.` : "Nothing is marked."), element("span", "heard", now));
    if (marking === this) this.paint();
  }
  showList() {
    const list = this.box.querySelector(".found");
    const held = list.contains(document.activeElement);
    list.replaceChildren(...this.passages.map((each, at) => {
      const row = element("button", `row ${word(each.right)}`);
      const how = SAID.get(each.right) + (each.added ? ", added" : each.changed ? ", changed" : "");
      const kind = element("span", `kind ${this.kind(each)}`, this.types.length > 1 ? each.type : "");
      kind.dataset.sign = this.sign(each);
      row.append(kind, element("bdi", "", this.words(each)), element("span", "number", each.sure), element("span", "how", how));
      Object.assign(row, { type: "button", onclick: () => this.go(at) });
      if (at === this.at) row.setAttribute("aria-current", "true");
      const item = element("li");
      item.append(row);
      return item;
    }));
    if (held) list.querySelector("[aria-current]")?.focus({ preventScroll: true });
  }
  showPanel() {
    const panel = this.box.querySelector(".in-hand");
    panel.hidden = !this.now;
    for (const [name, on] of [["right", this.now?.right === true], ["wrong", this.now?.right === false]]) {
      panel.querySelector(`[data-do=${name}]`).setAttribute("aria-pressed", on);
    }
    for (const button of this.box.querySelectorAll(".aside")) button.setAttribute("aria-pressed", this.aside === button.dataset.do);
    if (!this.now) return;
    panel.querySelector("p").replaceChildren(`${this.at + 1} of ${this.passages.length} `, element("q", "", this.words(this.now)));
    const select = panel.querySelector("select");
    if (select) select.value = this.now.type;
  }
  kind(passage) {
    const number = this.field ? this.types.indexOf(passage.type) : this.values.indexOf(passage.value);
    return `passage t${(number % 6) + 1} ${passage.strength} ${word(passage.right)}`;
  }
  sign(passage) {
    if (!this.field) return String(this.values.indexOf(passage.value) + 1);
    return this.types.length > 1 ? String(this.types.indexOf(passage.type) + 1) : "";
  }

  paint() {
    const text = byId("text");
    const focused = document.activeElement;
    const now = this.now;
    const edges = [...new Set([0, this.points.length, ...this.passages.flatMap((each) => [each.start, each.end])])];
    edges.sort((one, other) => one - other);
    const parts = [];
    edges.forEach((start, at) => {
      if (this.field && now?.end === start) parts.push(this.grips.end);
      if (this.field && now?.start === start) parts.push(this.grips.start);
      if (at + 1 < edges.length) parts.push(this.part(start, edges[at + 1]));
    });
    for (const [side, part] of Object.entries(this.grips)) {
      part.setAttribute("aria-valuenow", now?.[side] ?? 0);
      part.setAttribute("aria-valuetext", now ? this.words(now) : "");
    }
    text.replaceChildren(...parts);
    if (focused?.matches(".grip") && text.contains(focused)) focused.focus({ preventScroll: true });
  }
  part(start, end) {
    const over = this.passages.filter((each) => each.start <= start && end <= each.end && (each.right !== false || each === this.now));
    const content = this.points.slice(start, end).join("").split(/([\u202d\u202e])/).map((piece) =>
      /^[\u202d\u202e]$/.test(piece) ? element("span", "sign", "⇄") : document.createTextNode(piece));
    const shortest = [...over].sort((one, other) => one.end - one.start - (other.end - other.start))[0];
    const top = over.includes(this.now) ? this.now : shortest;
    const part = element(top ? "mark" : "span", top ? this.kind(top) : "");
    part.append(...content);
    if (!top) return part;
    part.classList.toggle("over", over.length > 1);
    part.classList.toggle("now", top === this.now);
    part.dataset.sign = over.filter((each) => each.start === start).map((each) => this.sign(each)).join(" ");
    part.title = over.map((each) => [each.value || each.type, each.sure, SAID.get(each.right)].filter(Boolean).join(", ")).join("; ");
    return part;
  }

  // A click on a passage takes it in hand; another click, the next one that lies there.
  take(position) {
    const there = [...this.passages.keys()].filter((at) => this.passages[at].start <= position && position < this.passages[at].end);
    there.sort((one, other) => this.length(one) - this.length(other));
    const at = there[(there.indexOf(this.at) + 1) % there.length];
    if (at === undefined) return;
    if (this.field) this.go(at);
    else choose([...this.box.querySelectorAll("input[type=radio]")].find((one) => one.value === this.passages[at].value));
    this.box.closest("fieldset")?.focus({ preventScroll: true });
  }
  length(at) {
    return this.passages[at].end - this.passages[at].start;
  }
}

const word = (right) => (right === null ? "review" : right ? "accept" : "reject");

function element(name, kind = "", content = "") {
  const made = document.createElement(name);
  if (kind) made.className = kind;
  made.textContent = content;
  return made;
}

function grip(side, { points }) {
  const made = element("span", `grip ${side}`);
  const settings = { role: "slider", tabindex: 0, "aria-label": `${side === "start" ? "Start" : "End"} of the passage` };
  for (const [name, value] of Object.entries({ ...settings, "aria-valuemin": 0, "aria-valuemax": points.length })) made.setAttribute(name, value);
  made.dataset.side = side;
  made.addEventListener("touchstart", (event) => event.preventDefault(), { passive: false }); // else the page scrolls
  return made;
}

function openPassages() {
  marking = null;
  markings = all("[data-marking]").map((box) => new Marking(box));
  work(markings[0]);
}
function work(other) {
  marking = other ?? null;
  for (const each of markings) each.box.classList.toggle("active", each === marking);
  marking?.paint();
}

// ---- the text ----

// How many characters stand before a place in the text; null if it is elsewhere.
function positionOf(node, offset) {
  const text = byId("text");
  if (!node || !text?.contains(node)) return null;
  const before = document.createRange();
  before.setStart(text, 0);
  before.setEnd(node, offset);
  return [...before.toString()].length;
}
function positionAt(x, y) {
  if (document.caretPositionFromPoint) {
    const caret = document.caretPositionFromPoint(x, y);
    return caret && positionOf(caret.offsetNode, caret.offset);
  }
  const range = document.caretRangeFromPoint?.(x, y);
  return range ? positionOf(range.startContainer, range.startOffset) : null;
}

// What is selected in the text, without spaces at its ends; null if nothing is.
function selected() {
  const selection = getSelection();
  if (!marking?.field || selection.isCollapsed || !selection.rangeCount) return null;
  const range = selection.getRangeAt(0);
  let [start, end] = [positionOf(range.startContainer, range.startOffset), positionOf(range.endContainer, range.endOffset)];
  if (start === null || end === null) return null;
  while (start < end && !marking.points[start].trim()) start++;
  while (start < end && !marking.points[end - 1].trim()) end--;
  return start < end ? { start, end, box: range.getBoundingClientRect() } : null;
}

function offer() {
  const part = pressing ? null : selected();
  clearTimeout(hiding);
  const types = marking?.box.querySelector(".adding");
  if (!types) return;
  if (!part) {
    hiding = setTimeout(() => { types.hidden = true; }, pressing ? 0 : LATER);
    return;
  }
  marking.selection = part;
  types.hidden = false;
  const left = Math.min(part.box.left, innerWidth - types.offsetWidth - 16);
  const below = Math.min(part.box.bottom + 8, innerHeight - types.offsetHeight - 8);
  Object.assign(types.style, { left: `${Math.max(left, 16)}px`, top: `${below}px` });
}
function addSelected(type) {
  const { start, end } = marking.selection;
  getSelection().removeAllRanges();
  marking.box.querySelector(".adding").hidden = true;
  marking.add(start, end, type);
  marking.box.closest("fieldset")?.focus({ preventScroll: true });
}
document.addEventListener("selectionchange", offer);

document.addEventListener("pointerdown", (event) => {
  const held = event.target.closest?.(".grip");
  pressing = event.pointerType === "mouse" && !event.target.closest?.(".adding");
  if (!held || !marking?.now) return;
  event.preventDefault();
  held.focus({ preventScroll: true });
  const box = held.getBoundingClientRect();
  drag = { side: held.dataset.side, x: event.clientX - box.left, y: event.clientY - (box.top + box.bottom) / 2 };
  byId("text").setPointerCapture(event.pointerId); // its parts are made anew while it moves
  byId("text").classList.add("dragging");
});
document.addEventListener("pointermove", (event) => {
  if (!drag || !marking?.now) return;
  const text = byId("text").getBoundingClientRect();
  byId("text").scrollTop += event.clientY > text.bottom ? 12 : event.clientY < text.top ? -12 : 0;
  const position = positionAt(event.clientX - drag.x, event.clientY - drag.y);
  const now = marking.now;
  const fits = position !== null && (drag.side === "start" ? position < now.end : position > now.start);
  if (fits && position !== now[drag.side]) marking.change({ [drag.side]: position, right: true, changed: true });
});
for (const name of ["pointerup", "pointercancel"]) document.addEventListener(name, () => {
  pressing = false;
  if (drag) byId("text")?.classList.remove("dragging");
  else offer();
  drag = null;
});

// ---- buttons and keys ----

const ACTS = {
  right: () => marking.decide(true),
  wrong: () => marking.decide(false),
  before: () => marking.go(marking.at - 1),
  after: () => marking.go(marking.at + 1),
  none: () => marking.toggle("none"),
  unsure: () => marking.toggle("unsure"),
};
const KEYS = { a: "right", x: "wrong", k: "before", j: "after", arrowup: "before", arrowdown: "after", 0: "none", "-": "unsure" };

document.addEventListener("click", (event) => {
  const text = event.target.closest("#text");
  if (text && marking && getSelection().isCollapsed && !event.target.matches(".grip")) {
    const position = positionAt(event.clientX, event.clientY);
    if (position !== null) marking.take(position);
  }
  const box = event.target.closest(".marking");
  const button = event.target.closest("button");
  if (!box || !button) return;
  work(markings.find((each) => each.box === box));
  const { do: act, side, by, add } = button.dataset;
  if (act) ACTS[act]();
  if (side) marking.move(side, Number(by));
  if (add) addSelected(add);
  if (event.detail && !add) box.closest("fieldset")?.focus({ preventScroll: true }); // after a mouse, keys work as before
});
document.addEventListener("change", (event) => {
  if (event.target.matches(".values [type=radio]")) {
    marking.at = marking.passages.findIndex((each) => each.value === event.target.value);
    marking.paint();
  }
  if (event.target.matches("[data-type]")) {
    work(markings.find((each) => each.box.contains(event.target)));
    marking.change({ type: event.target.value, right: true, changed: true });
    event.target.closest("fieldset")?.focus({ preventScroll: true });
  }
});
document.addEventListener("input", (event) => {
  if (event.target.matches(".values [type=text]")) event.target.closest("label").querySelector("[type=radio]").checked = true;
});
document.addEventListener("focusin", (event) => {
  const variable = event.target.closest("fieldset.variable");
  const other = markings.find((each) => variable?.contains(each.box));
  if (other && other !== marking) work(other);
  if (variable) for (const each of markings) each.box.classList.toggle("active", each === other);
});

// Return whether a key is about passages, and do what it says.
function passageKey(event) {
  const at = document.activeElement;
  const variable = at.closest("fieldset.variable") ?? (at.closest("#text") ? marking?.box.closest("fieldset") : variables()[0]);
  if (!marking?.field || (variable && !variable.contains(marking.box)) || event.metaKey) return false;
  const written = event.getModifierState("AltGraph");
  if (event.ctrlKey && !written) return false;
  const unit = event.altKey && !written ? "grapheme" : "word";
  const bracket = event.altKey && !written && { BracketLeft: "[{", BracketRight: "]}" }[event.code]?.[Number(event.shiftKey)];
  const moves = SIDES[bracket || event.key] ?? arrowMoves(event, at);
  if (moves) {
    marking.move(...moves.slice(0, 2), moves[2] ?? unit);
    return true;
  }
  if (event.altKey || event.repeat) return false;
  return keysOf(event).some((key) => plainKey(key, at));
}
function arrowMoves(event, at) {
  const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (!by) return null;
  if (at.matches(".grip")) return [at.dataset.side, by, event.shiftKey ? "word" : "grapheme"];
  return event.altKey ? [event.shiftKey ? "start" : "end", by, "grapheme"] : null;
}
function plainKey(key, at) {
  if (key.startsWith("arrow") && at.matches("#text, .grip, aside")) return false; // it scrolls
  const type = /^[1-9]$/.test(key) ? marking.types[Number(key) - 1] : null;
  if (type && selected()) addSelected(type);
  else if (type && marking.now) marking.change({ type, right: true, changed: marking.now.changed || type !== marking.now.type });
  else if (key === "m") marking.addWord();
  else if (Object.hasOwn(KEYS, key)) ACTS[KEYS[key]]();
  else return false;
  return true;
}

// ---- saving ----

// Who saves with something left open is told what it will count as, once.
document.addEventListener("submit", (event) => {
  const open = markings.filter((each) => each.field && event.target.contains(each.box) && !each.warned);
  const undecided = open.reduce((sum, each) => sum + each.undecided(), 0);
  const empty = open.some((each) => !each.aside && !each.passages.length);
  if (event.submitter?.name === "skip" || !(undecided || empty)) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  for (const each of open) each.warned = true;
  const first = open.find((each) => each.undecided()) ?? open.find((each) => !each.passages.length && !each.aside);
  work(first);
  if (undecided) first.go(first.passages.findIndex((each) => each.right === null));
  first.warned = true;
  const what = undecided ? `${undecided} undecided will count as not right` : "No passage is marked in this text";
  say(`${what}: save again if that is what you mean.`, "problem");
}, true);
