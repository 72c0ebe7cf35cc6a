"use strict";

const form = document.getElementById("form");
const answer = document.getElementById("answer");
const curl = document.getElementById("curl");
const curlEnd = curl.textContent.split(" -H ")[1];
const EVERY = 5000; // milliseconds between two looks at how the service is

function element(name, text, kind) {
  const made = document.createElement(name);
  made.textContent = text;
  if (kind) made.className = kind;
  return made;
}

function body() {
  const values = Object.fromEntries(new FormData(form));
  return JSON.stringify({ input: ["text" in values ? values.text : values] });
}

function shown(name, item) {
  const card = element("div", "");
  if (name) card.append(element("p", name, "name"));
  if (item.error) {
    card.append(element("p", item.error.message, "bad"));
    return card;
  }
  card.append(element("span", item.label, "label"));
  if (item.decision) card.append(element("span", item.decision, item.decision === "review" ? "chip warn" : "chip good"));
  if (item.confidence !== null) {
    card.append(element("p", `right with a probability of ${Math.round(100 * item.confidence)} %`));
  }
  card.append(element("p", item.reason, "soft"));
  const { calls, usd } = item.cost;
  const paid = `${calls} ${calls === 1 ? "call" : "calls"}${usd ? `, $${usd.toPrecision(2)}` : ""}`;
  card.append(element("p", calls ? paid : "known already: nothing was paid", "soft"));
  return card;
}

function show(reply) {
  document.getElementById("reply").textContent = JSON.stringify(reply, null, 2);
  if (reply.error) return [element("p", reply.error.message, "bad")];
  const { index, ...item } = reply.data[0];
  if ("label" in item) return [shown("", item)];
  return Object.entries(item).flatMap(([name, parts]) => {
    if (!Array.isArray(parts)) return [shown(name, parts)];
    const applying = parts.filter((part) => part.applies);
    return applying.length ? applying.map((part) => shown(name, part)) : [shown(name, { ...parts[0], label: "none" })];
  });
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const button = form.querySelector("button");
  button.disabled = true;
  answer.replaceChildren(element("p", "Asking the models …", "soft"));
  try {
    const sent = await fetch("/v1/classify", { method: "POST", body: body() });
    answer.replaceChildren(...show(await sent.json()));
  } catch {
    answer.replaceChildren(element("p", "The service does not answer: is it still running?", "bad"));
  }
  button.disabled = false;
});

form.addEventListener("input", () => {
  const quoted = body().replaceAll("'", "'\\''");
  curl.textContent = `${curl.dataset.start}-d '${quoted}'${curlEnd ? ` -H ${curlEnd}` : ""}`;
});

form.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
});

setInterval(async () => {
  try {
    const page = new DOMParser().parseFromString(await (await fetch("/")).text(), "text/html");
    for (const found of ["#state table", "header .chip"]) {
      document.querySelector(found).replaceWith(page.querySelector(found));
    }
  } catch {
    document.querySelector("header .chip").replaceWith(element("span", "does not answer", "chip warn"));
  }
}, EVERY);
