// The page about the service: shows the command for the text in the box, and runs it here.
"use strict";

const byId = (id) => document.getElementById(id);
const command = byId("curl").textContent.split("\n");
const quoted = (text) => `'${text.replaceAll("'", `'"'"'`)}'`; // as the server quotes for a shell
const body = () => JSON.stringify({ input: [byId("text").value] });

function paint() {
  command[0] = `curl -s ${location.origin}/v1/classify \\`;
  byId("curl").textContent = [...command.slice(0, -1), `  -d ${quoted(body())}`].join("\n");
}

function say(text, kind = "") {
  byId("said").className = kind;
  byId("said").textContent = text;
}

byId("text").addEventListener("input", paint);
byId("text").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) byId("trial").requestSubmit();
});
byId("trial").addEventListener("submit", async (event) => {
  event.preventDefault();
  say("Asking …");
  const began = performance.now();
  try {
    const options = { method: "POST", headers: { "Content-Type": "application/json" }, credentials: "same-origin" };
    const response = await fetch("/v1/classify", { ...options, body: body() });
    const answer = await response.json();
    byId("reply-title").textContent = "The reply";
    byId("answer").textContent = JSON.stringify(answer, null, 2);
    const took = ((performance.now() - began) / 1000).toFixed(1);
    if (response.ok) say(`${answer.data[0].label ?? "no label"} · ${answer.data[0].decision ?? ""} · ${took} s`);
    else say(answer.error.message, "problem");
  } catch {
    say("The service does not answer. Is pcs serve still running?", "problem");
  }
});
paint();
document.documentElement.classList.add("ready");
