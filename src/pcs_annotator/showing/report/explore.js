"use strict";
(() => {
  const PAGE = 25;
  const LONG = 220;
  const GRADES = 4;
  const EXCERPT = 80;
  const make = (name, kind, ...inside) => {
    const one = document.createElement(name);
    if (kind) one.className = kind;
    one.append(...inside.filter((part) => part !== null && part !== ""));
    return one;
  };
  // words of a user or a model set their own writing direction
  const own = (name, kind, ...inside) => {
    const one = make(name, kind, ...inside);
    one.dir = "auto";
    return one;
  };
  const bar = (share) => {
    const filled = make("span", "filled");
    filled.style.width = `${100 * share}%`;
    return make("span", "sure", make("span", "track", filled), share.toFixed(2));
  };

  const listRows = ({ titles, sides, rows, pool }, prefix) => {
    const named = (id) => document.getElementById(`${prefix}${id}`);
    const list = named("list");
    const more = named("more");
    const search = named("search");
    const order = named("order");
    const label = named("label");
    const buttons = [...named("controls").querySelectorAll("button[data-filter]")];
    let fitting = [];

    const cell = ([kind, says, share, small], place) => {
      const one = make("span", kind);
      one.dataset.title = titles[place + 2];
      if (kind.startsWith("said")) one.append(own("span", says === null ? "chip warn" : "chip", says ?? "no label"));
      else if (says !== null) one.append(own("span", "", says));
      if (share !== null) one.append(bar(share));
      if (small) one.append(own("small", "", small));
      return one;
    };

    // words that speak for the label or against it: where each starts, and its length, negative if against
    const marked = (row) => {
      const words = row.words || [];
      const parts = [];
      let until = 0;
      for (let at = 0; at < words.length; at += 2) {
        const kind = words[at + 1] > 0 ? "for" : "against";
        const end = words[at] + Math.abs(words[at + 1]);
        const mark = make("mark", kind, row.text.slice(words[at], end));
        mark.title = `speaks ${kind} the label`;
        parts.push(row.text.slice(until, words[at]), mark);
        until = end;
      }
      return [...parts, row.text.slice(until) || (until ? "" : "(empty text)")];
    };

    const variant = (row, found) => {
      if (found === 0) return own("td", "variant", ...marked(row));
      if (found === 1) return make("td", "variant quiet", "same text, question put differently");
      const [why, parts] = found;
      const changed = parts.map((part) => (typeof part === "string" ? part : make(part[0], "", part[1])));
      return own("td", "variant", why && make("span", "quiet", why), make("span", why ? "refused" : "", ...changed));
    };

    // an answer is the place of a label; or several places, each with its probability or how often it was given
    const vote = (found, chosen, side, by) => {
      const [how, ...given] = typeof found === "number" ? ["label", [found]] : found;
      const place = given[0][0];
      const amount = { graded: (value) => ` ${value.toFixed(2)}`, drawn: (value) => ` ${value}×`, label: () => "" }[how];
      const named = given.map(([code, value]) => `${side.labels[code]}${amount(value)}`);
      const kind = place < 0 ? "silent" : place === chosen ? "yes" : "no";
      const says = place < 0 ? (place === -1 ? "no label" : "–") : how === "graded" ? named[0] : named.join(", ");
      const one = own("td", `vote ${kind}`, says);
      if (how === "graded" && named.length > 1)
        one.append(make("small", "", named.slice(1, GRADES).join(", ") + (named.length > GRADES ? ", …" : "")));
      one.dataset.by = by;
      return one;
    };

    const answers = (row) => row.votes.map(([chosen, lines], at) => {
      const side = sides[at];
      const heads = ["relation", "text", ...side.annotators].map((name) => own("th", "", name));
      const body = lines.map(([found, ...votes], line) => {
        const cells = votes.map((one, model) => vote(one, chosen, side, side.annotators[model]));
        return make("tr", "", own("th", "", side.relations[line]), variant(row, found), ...cells);
      });
      const table = make("table", "votes", make("thead", "", make("tr", "", ...heads)), make("tbody", "", ...body));
      const scroll = make("div", "scroll", table);
      scroll.tabIndex = 0;
      return make("div", "", side.title ? make("h3", "", side.title) : null, scroll);
    });

    // a prompt is kept once for all rows: what is before and after the text, which stands between lines with a marker
    const exchange = (row, [cell, prompt, marker, reply, sent, got, seconds]) => {
      const { annotators, relations } = sides[0];
      const line = Math.floor(cell / annotators.length);
      const [found] = row.votes[0][1][line];
      const kept = typeof found === "number" ? [row.text] : found[1].filter((part) => part[0] !== "del" || typeof part === "string");
      const text = kept.map((part) => (typeof part === "string" ? part : part[1])).join("");
      const mark = pool[marker];
      const said = (who, what) => {
        const words = own("pre", "", what);
        words.tabIndex = 0;
        return [make("b", "", who), words];
      };
      const turn = ([role, before, after]) =>
        said(role, after === undefined ? before : `${before}${mark}\n${mark}\n${text}\n${mark}${after}`);
      const spent = make("span", "quiet", `${sent ?? "–"} + ${got ?? "–"} tokens, ${seconds.toFixed(1)} s`);
      const named = [make("b", "", relations[line]), own("span", "", annotators[cell % annotators.length])];
      const excerpt = own("q", "", pool[reply].slice(0, EXCERPT));
      const turns = pool[prompt].flatMap((place) => turn(pool[place]));
      return make("details", "", make("summary", "", named[0], " ", named[1], " ", excerpt, " ", spent), ...turns, ...said("reply", pool[reply]));
    };
    const exchanges = (row) => {
      const all = make("div", "exchanges");
      const fold = make("details", "evidence", make("summary", "", "Prompts and replies"), all);
      fold.addEventListener("toggle", () => all.replaceChildren(...row.asked.map((one) => exchange(row, one))), { once: true });
      return fold;
    };
    const legend = (row) => {
      const label = own("b", "", sides[0].labels[row.votes[0][0]]);
      const kinds = ["Words that speak ", make("mark", "for", "for"), " or ", make("mark", "against", "against"), " "];
      return make("p", "note", ...kinds, label, ", as learned from gold texts.");
    };

    const opened = (row) => {
      const told = (row.people || []).map((one) => own("li", "", one));
      const people = told.length ? [make("h3", "", "Verdicts"), make("ul", "", ...told)] : [];
      const asked = row.votes.some(([, lines]) => lines.some(([found]) => found === 0));
      const whole = asked ? null : own("p", "whole", ...marked(row));
      const more = [row.words ? legend(row) : null, row.asked ? exchanges(row) : null];
      return make("div", "more", whole, ...people, ...answers(row), ...more);
    };

    const entry = (row) => {
      const preview = row.text.length > LONG ? `${row.text.slice(0, LONG)}…` : row.text || "(empty text)";
      const cells = [own("span", "id", row.id), own("span", "text", preview), ...row.cells.map(cell)];
      const details = make("details", "", make("summary", "", ...cells));
      details.addEventListener("toggle", () => {
        if (details.children.length === 1) details.append(opened(row));
      });
      return make("li", "", details);
    };

    const wordsOf = (row) => [row.id, row.text, ...row.cells.flat()].join(" ").toLowerCase();
    const waiting = (row) => (row.is.includes("review") || row.is.includes("none") ? 0 : 1);
    const orders = {
      review: (a, b) => waiting(a) - waiting(b) || a.sure - b.sure,
      file: () => 0,
      sure: (a, b) => a.sure - b.sure,
      surest: (a, b) => b.sure - a.sure,
      label: (a, b) => (a.label || "").localeCompare(b.label || "") || a.sure - b.sure,
    };

    const grow = () => {
      const shown = list.children.length;
      list.append(...fitting.slice(shown, shown + PAGE).map(entry));
      const left = fitting.length - list.children.length;
      more.hidden = left <= 0;
      more.textContent = `Show ${Math.min(left, PAGE)} more`;
      const some = left > 0 ? `, ${list.children.length} shown` : "";
      named("found").textContent = `${fitting.length} of ${rows.length} rows${some}`;
    };
    const show = () => {
      const sought = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      const pressed = buttons.filter((one) => one.ariaPressed === "true").map((one) => one.dataset.filter);
      fitting = rows.filter((row) =>
        pressed.every((name) => row.is.includes(name)) && (!label || !label.value || row.label === label.value)
        && sought.every((word) => wordsOf(row).includes(word)));
      fitting.sort(orders[order.value]);
      named("nothing").hidden = fitting.length > 0;
      list.replaceChildren();
      grow();
    };

    for (const button of buttons) {
      button.addEventListener("click", () => {
        const press = button.ariaPressed !== "true";
        for (const other of button.parentElement.children) other.ariaPressed = String(press && other === button);
        show();
      });
    }
    search.addEventListener("input", show);
    for (const one of [order, label]) one?.addEventListener("change", show);
    more.addEventListener("click", grow);
    named("controls").hidden = false;
    show();
  };

  // each variable of a run has a list of its own, whose elements have its name before theirs
  for (const data of document.querySelectorAll('script[type="application/json"]')) {
    listRows(JSON.parse(data.textContent), data.id.slice(0, -"data".length));
  }
  for (const command of navigator.clipboard ? document.querySelectorAll("code.command") : []) {
    const button = make("button", "copy", "Copy");
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(command.textContent);
      button.textContent = "Copied";
    });
    command.after(button);
  }
})();
