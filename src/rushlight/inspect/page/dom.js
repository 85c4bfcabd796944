// Elements, numbers for people, the tooltip. Text always goes in as text nodes, never as markup:
// names come from the file.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child || child === 0));
  return node;
}

const el = (tag, attributes, ...children) =>
  fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) =>
  fill(document.createElementNS(SVG, tag), attributes, children);
const byId = (id) => document.getElementById(id);

const count = (n) => n.toLocaleString("en-US");
const plural = (n, what) => `${count(n)} ${what}${n === 1 ? "" : "s"}`;

function size(bytes) {
  const units = ["B", "KiB", "MiB", "GiB"];
  let value = bytes, unit = 0;
  while (value >= 1024 && unit < units.length - 1) { value /= 1024; unit += 1; }
  const digits = unit === 0 || value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return `${value.toFixed(digits)} ${units[unit]}`;
}

const above = (bytes, bound) =>
  bound && bytes > bound ? `+${((bytes / bound - 1) * 100).toFixed(1)}%` : "";

// Round values for an axis: multiples of 1, 2 or 5 times a power of ten, or of two for bytes.
function ticks(from, to, wanted, binary) {
  const raw = Math.max((to - from) / wanted, 1);
  let distance = binary ? 2 ** Math.ceil(Math.log2(raw)) : 10 ** Math.floor(Math.log10(raw));
  const times = raw / distance;
  if (!binary) distance *= times > 5 ? 10 : times > 2 ? 5 : times > 1 ? 2 : 1;
  const values = [];
  for (let at = Math.ceil(from / distance) * distance; at <= to; at += distance) values.push(at);
  return values;
}

// A list of terms and what they are; those without a value are left out.
const facts = (...pairs) =>
  el("dl", { class: "facts" }, pairs.filter(([, value]) => value !== "" && value !== null &&
    value !== undefined).map(([term, value]) => [el("dt", {}, term), el("dd", {}, value)]));

const tip = {
  show(event, ...content) {
    const box = byId("tip");
    box.replaceChildren(...content);
    box.hidden = false;
    const { width, height } = box.getBoundingClientRect();
    const x = event.clientX + 16, y = event.clientY + 16;
    box.style.left = `${Math.max(8, x + width > innerWidth - 8 ? x - width - 32 : x)}px`;
    box.style.top = `${Math.max(8, y + height > innerHeight - 8 ? y - height - 32 : y)}px`;
  },
  hide() { byId("tip").hidden = true; },
};
