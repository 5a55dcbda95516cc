// The table of cases: sort by a column, filter by verdict and name. Without it the page shows everything.
(() => {
  "use strict";
  const table = document.querySelector("table.cases");
  if (!table) return;
  const body = table.tBodies[0];
  const rows = Array.from(body.rows);
  const heads = Array.from(table.tHead.rows[0].cells);
  const controls = document.querySelector("form.controls");
  const search = controls.querySelector("input[type=search]");
  const boxes = Array.from(controls.querySelectorAll("input[type=checkbox]"));
  const status = controls.querySelector("[role=status]");
  const names = new Map(rows.map((row) => [row, row.querySelector(".id").textContent.toLowerCase()]));

  const key = (row, column, kind) => {
    if (kind === "text") return names.get(row);
    const value = row.cells[column].dataset.value;
    return value === undefined ? null : Number(value);
  };

  const compare = (one, other) =>
    typeof one === "string" ? one.localeCompare(other, "en", { numeric: true }) : one - other;

  const sort = (column, direction) => {
    const kind = heads[column].dataset.kind;
    const keyed = rows.map((row, place) => [key(row, column, kind), place, row]);
    keyed.sort(([one, place], [other, next]) => {
      if (one === null || other === null) return (one === null) - (other === null) || place - next;
      return direction * compare(one, other) || place - next;
    });
    body.append(...keyed.map(([, , row]) => row));
    heads.forEach((head, place) => {
      if (place === column) head.setAttribute("aria-sort", direction > 0 ? "ascending" : "descending");
      else head.removeAttribute("aria-sort");
    });
  };

  const filter = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const shown = new Set(boxes.filter((box) => box.checked).map((box) => box.value));
    let count = 0;
    for (const row of rows) {
      const fits = shown.has(row.dataset.verdict) && words.every((word) => names.get(row).includes(word));
      row.hidden = !fits;
      count += fits;
    }
    status.textContent = `${count} of ${rows.length} cases shown`;
  };

  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      // Numbers first from the slow end, names and verdicts from the start.
      const first = head.dataset.kind === "text" || column === 1 ? 1 : -1;
      const now = head.getAttribute("aria-sort");
      sort(column, now === null ? first : now === "ascending" ? -1 : 1);
    });
  });
  controls.addEventListener("submit", (event) => event.preventDefault());
  controls.addEventListener("input", filter);
  search.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      search.value = "";
      filter();
    }
  });
  controls.hidden = false;
  filter();
  heads[1].setAttribute("aria-sort", "ascending");
})();
