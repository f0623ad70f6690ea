"use strict";
// A table with a filter: rows by the words typed, sorted by the column clicked, the first ones shown.
const FIRST = 500;

function prepare(table) {
  const body = table.tBodies[0];
  const input = document.querySelector(`input[data-for="${table.id}"]`);
  const count = document.querySelector(`[data-count="${table.id}"]`);
  const infos = document.querySelector(`input[data-infos="${table.id}"]`);
  const more = document.createElement("button");
  let rows = Array.from(body.rows);
  const words = new Map(rows.map((row) => [row, row.textContent.toLowerCase()]));
  let most = FIRST;

  function show() {
    const asked = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let found = 0;
    for (const row of rows) {
      const fits = asked.every((word) => words.get(row).includes(word)) &&
        (!infos || infos.checked || row.className !== "info");
      found += fits;
      row.hidden = !fits || found > most;
    }
    count.textContent = `${found.toLocaleString("en")} of ${rows.length.toLocaleString("en")} rows`;
    more.hidden = found <= most;
    more.textContent = `Show all ${found.toLocaleString("en")} rows`;
  }

  function key(row, column) {
    const cell = row.cells[column];
    return cell.dataset.key === undefined ? cell.textContent : Number(cell.dataset.key);
  }

  function sort(column, head) {
    const down = head.getAttribute("aria-sort") === "ascending";
    for (const one of table.tHead.rows[0].cells) one.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const keys = new Map(rows.map((row) => [row, key(row, column)]));
    rows.sort((a, b) => {
      const x = keys.get(a), y = keys.get(b);
      const order = typeof x === "number" ? x - y : x < y ? -1 : x > y ? 1 : 0;
      return down ? -order : order;
    });
    body.append(...rows);
    show();
  }

  Array.from(table.tHead.rows[0].cells).forEach((head, column) => {
    head.tabIndex = 0;
    head.addEventListener("click", () => sort(column, head));
    head.addEventListener("keydown", (event) => {
      if (event.key === "Enter") sort(column, head);
    });
  });
  input.addEventListener("input", show);
  if (infos) {
    infos.checked = rows.every((row) => row.className === "info");
    infos.addEventListener("change", show);
  }
  more.addEventListener("click", () => { most = Infinity; show(); });
  window.addEventListener("beforeprint", () => { most = Infinity; show(); });
  table.parentElement.after(more);
  show();
}

document.querySelectorAll("table.sorted").forEach(prepare);
