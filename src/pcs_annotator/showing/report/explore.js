"use strict";
(() => {
  const list = document.getElementById("list");
  const rows = [...list.children];
  const texts = new Map();
  const search = document.getElementById("search");
  const order = document.getElementById("order");
  const buttons = [...document.querySelectorAll("button[data-filter]")];
  const pressed = () => buttons.filter((one) => one.getAttribute("aria-pressed") === "true");

  const textOf = (row) => {
    if (!texts.has(row)) texts.set(row, row.textContent.toLowerCase());
    return texts.get(row);
  };

  const show = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const filters = pressed().map((one) => one.dataset.filter).filter((name) => name !== "all");
    let found = 0;
    for (const row of rows) {
      const marks = (row.dataset.is || "").split(" ");
      const fits = filters.every((name) => marks.includes(name)) && words.every((word) => textOf(row).includes(word));
      row.hidden = !fits;
      found += fits;
    }
    document.getElementById("found").textContent = `${found} of ${rows.length} rows`;
    document.getElementById("nothing").hidden = found > 0;
  };

  for (const button of buttons) {
    button.addEventListener("click", () => {
      for (const other of button.parentElement.children) other.setAttribute("aria-pressed", String(other === button));
      show();
    });
  }
  search.addEventListener("input", show);
  order.addEventListener("change", () => {
    const sorted = order.value === "sure" ? [...rows].sort((a, b) => certainty(a) - certainty(b)) : rows;
    list.append(...sorted);
  });
  const certainty = (row) => Number(row.dataset.sure);

  document.getElementById("controls").hidden = false;
  show();
})();
