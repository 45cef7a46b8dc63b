"use strict";
// Sorts tables by a column, searches long ones, names the numbers of images and courses, and opens folded parts
// for printing. The page is complete without it.
for (const table of document.querySelectorAll("table.data")) {
  const body = table.tBodies[0];
  // A row that belongs to the one above stays below it.
  const groups = [];
  for (const row of body.rows) {
    if (row.classList.contains("sub") && groups.length) groups[groups.length - 1].push(row);
    else groups.push([row]);
  }
  const key = (group, at) => {
    const cell = group[0].cells[at];
    if (!cell) return "";
    return cell.dataset.v === undefined ? cell.textContent : Number(cell.dataset.v);
  };
  const compare = (one, other) => {
    if (typeof one === "number" && typeof other === "number") return one - other;
    if (typeof one !== typeof other) return typeof one === "number" ? 1 : -1;
    return one.localeCompare(other);
  };
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, at) => {
    // A column without a name is a picture of the one beside it.
    if (!head.textContent) return;
    const button = document.createElement("button");
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") !== "descending" && head.classList.contains("n");
      const up = !head.classList.contains("n") && head.getAttribute("aria-sort") === "ascending";
      const sign = down || up ? -1 : 1;
      heads.forEach(other => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", sign < 0 ? "descending" : "ascending");
      groups.sort((one, other) => sign * compare(key(one, at), key(other, at)));
      body.append(...groups.flat());
    });
  });
  const place = table.parentElement;
  if (place.dataset.search === undefined) continue;
  const field = document.createElement("input");
  field.type = "search";
  field.className = "search";
  field.placeholder = "Rows with this text";
  field.setAttribute("aria-label", "Show only rows with this text");
  field.addEventListener("input", () => {
    const wanted = field.value.toLowerCase();
    for (const group of groups) {
      const hidden = !group.some(row => row.textContent.toLowerCase().includes(wanted));
      group.forEach(row => { row.hidden = hidden; });
    }
  });
  place.before(field);
}
const tip = document.createElement("div");
tip.className = "tip";
tip.hidden = true;
document.body.append(tip);
// text: of a place, from 0 to 1 in both directions.
const names = (element, text) => {
  element.addEventListener("pointermove", event => {
    const box = element.getBoundingClientRect();
    const part = (at, from, length) => Math.min(Math.max((at - from) / length, 0), 0.999999);
    tip.textContent = text(part(event.clientX, box.left, box.width), part(event.clientY, box.top, box.height));
    tip.hidden = !tip.textContent;
    tip.style.left = `${Math.min(event.clientX + 12, innerWidth - tip.offsetWidth - 4)}px`;
    tip.style.top = `${event.clientY + 16}px`;
  });
  element.addEventListener("pointerleave", () => { tip.hidden = true; });
};
for (const course of document.querySelectorAll("[data-parts]")) {
  const parts = course.dataset.parts.split(";");
  const time = at => `${(at / parts.length * course.dataset.end).toPrecision(3)} s`;
  names(course.querySelector("svg"), x => {
    const at = Math.floor(x * parts.length);
    if (!parts[at]) return "";
    const [least, mean, most] = parts[at].split("|");
    const values = most === undefined ? least : `${least} to ${most}, ${mean} on average`;
    return `${time(at)} to ${time(at + 1)}: ${values}`;
  });
}
for (const image of document.querySelectorAll("[data-numbers]")) {
  let numbers;
  image.addEventListener("pointerenter", async () => {
    const bytes = Uint8Array.from(atob(image.dataset.numbers), letter => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    numbers = (await new Response(stream).text()).split("\n").map(line => line.split("\t"));
  }, { once: true });
  names(image, (x, y) => {
    if (!numbers) return "";
    const [[unit], who, cells, sentences, kinds] = numbers;
    const [from, to] = [y, x].map(part => Math.floor(part * who.length));
    const at = from * who.length + to;
    const cell = cells[at].replace(/\B(?=(\d{3})+$)/g, ",") + unit;
    const said = { ROW: who[from], COLUMN: who[to], CELL: cell };
    return sentences[kinds[at] || 0].split("|").map(piece => said[piece] ?? piece).join("");
  });
}
const closed = [];
addEventListener("beforeprint", () => {
  for (const part of document.querySelectorAll("details:not([open])")) { part.open = true; closed.push(part); }
});
addEventListener("afterprint", () => { for (const part of closed.splice(0)) part.open = false; });
