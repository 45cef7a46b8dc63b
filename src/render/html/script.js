"use strict";
// Sorts tables by a column, searches long ones, names the numbers of images and courses, zooms timelines, and opens
// folded parts for printing. The page is complete without it.
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
// A timeline is zoomed by making its drawing wider inside of its frame, which scrolls.
for (const drawing of document.querySelectorAll("svg.timeline")) {
  const [frame, time] = [drawing.parentElement, drawing.querySelector(".time")];
  const [axis, ranks] = [drawing.querySelector(".axis"), drawing.querySelector(".ranks")];
  const pattern = drawing.querySelector("pattern[href]");
  const { left, width, cells, seconds } = Object.fromEntries(
    Object.entries(time.dataset).map(([name, text]) => [name, Number(text)]));
  const { width: whole, height } = drawing.viewBox.baseVal;
  const [names, lines] = [[...axis.children], [...time.querySelectorAll(".grid")]];
  const narrowest = parseFloat(getComputedStyle(drawing).minWidth);
  const most = Math.max(1, 8 * cells / width);
  const namespace = drawing.namespaceURI;
  const [named, [, top, bottom]] = [names[0].getAttribute("y"), lines[0].getAttribute("d").split(/[V ]/)];
  const timeText = at => {
    const [unit, per] = [["s", 1], ["ms", 1e3], ["µs", 1e6], ["ns", 1e9]].find(([, per]) => at * per >= 1) || ["ns", 1e9];
    return `${Number((at * per).toPrecision(6))} ${unit}`;
  };
  let zoom = 1;
  const perPixel = () => drawing.viewBox.baseVal.width / drawing.getBoundingClientRect().width;
  // From when until when it is seen, as parts of the window.
  const seen = () => {
    const part = at => Math.min(Math.max((at * perPixel() - left) / (width * zoom), 0), 1);
    return [part(frame.scrollLeft + left / perPixel()), part(frame.scrollLeft + frame.clientWidth)];
  };
  const tools = document.createElement("div");
  tools.className = "zoom";
  const said = document.createElement("output");
  const scrolled = () => {
    ranks.setAttribute("transform", `translate(${frame.scrollLeft * perPixel()})`);
    const [from, to] = seen();
    said.textContent = zoom > 1 ? `${timeText(from * seconds)} to ${timeText(to * seconds)}` : "";
  };
  // at: a part of the window, which stays where it is in the frame, so many pixels from its left edge.
  const show = (wanted, at, pixels) => {
    zoom = Math.min(Math.max(wanted, 1), most);
    const times = (whole + width * (zoom - 1)) / whole;
    drawing.setAttribute("viewBox", `0 0 ${whole * times} ${height}`);
    drawing.style.width = `${100 * times}%`;
    drawing.style.minWidth = `${narrowest * times}px`;
    time.setAttribute("transform", `translate(${left}) scale(${zoom} 1) translate(${-left})`);
    pattern.setAttribute("patternTransform", `scale(${cells / width / zoom} 1) rotate(45)`);
    frame.scrollLeft = (left + at * width * zoom) / perPixel() - pixels;
    marked();
    smaller.disabled = all.disabled = zoom === 1;
    larger.disabled = zoom === most;
    scrolled();
  };
  // Lines and names at round times.
  const marked = () => {
    time.querySelectorAll(".grid").forEach(line => line.remove());
    axis.replaceChildren(...zoom > 1 ? [] : names);
    if (zoom === 1) { time.append(...lines); return; }
    const least = seconds / 10 / zoom, decade = 10 ** Math.floor(Math.log10(least));
    const step = [1, 2, 5, 10].map(part => part * decade).find(step => step >= least * 0.999999);
    for (let at = 0; at * step <= seconds * 1.000001; at++) {
      const x = at * step / seconds * width;
      const [line, name] = ["path", "text"].map(kind => document.createElementNS(namespace, kind));
      line.setAttribute("class", "grid");
      line.setAttribute("d", `M${left + x} ${top}V${bottom}`);
      name.setAttribute("x", left + x * zoom);
      name.setAttribute("y", named);
      name.textContent = timeText(at * step);
      time.append(line);
      axis.append(name);
    }
  };
  // Around the middle of what is seen.
  const by = factor => {
    const [from, to] = seen();
    const middle = (from + to) / 2;
    show(zoom * factor, middle, (left + middle * width * zoom) / perPixel() - frame.scrollLeft);
  };
  const button = (text, label, action) => {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = text;
    made.setAttribute("aria-label", label);
    made.addEventListener("click", action);
    tools.append(made);
    return made;
  };
  const larger = button("+", "Zoom in", () => by(2));
  const smaller = button("−", "Zoom out", () => by(0.5));
  const all = button("all", "Show all of the window", () => by(0));
  tools.append(said);
  frame.before(tools);
  frame.addEventListener("scroll", scrolled);
  addEventListener("resize", scrolled);
  frame.addEventListener("keydown", event => {
    const factor = { "+": 2, "=": 2, "-": 0.5, "0": 0 }[event.key];
    if (factor === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    by(factor);
  });
  // With Ctrl, as the wheel alone scrolls the page.
  frame.addEventListener("wheel", event => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const pixels = event.clientX - frame.getBoundingClientRect().left;
    const at = Math.min(Math.max(((frame.scrollLeft + pixels) * perPixel() - left) / (width * zoom), 0), 1);
    show(zoom * 2 ** (-event.deltaY / 200), at, pixels);
  }, { passive: false });
  show(1, 0, 0);
}
const closed = [];
addEventListener("beforeprint", () => {
  for (const part of document.querySelectorAll("details:not([open])")) { part.open = true; closed.push(part); }
});
addEventListener("afterprint", () => { for (const part of closed.splice(0)) part.open = false; });
