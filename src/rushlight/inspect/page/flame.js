// Where the time goes, by module: modules from the outermost, then operators, then the parts of
// delegates. Widths are times of a trace, or else work that is estimated from sizes.

const ROW = 22; // pixels
const LEGIBLE = 26; // pixels, of a frame with its name
const NARROW = 0.0006; // a smaller share of the width is not drawn

class Flame {
  constructor(root) {
    this.frame = el("div", { class: "flame", role: "group", "aria-label": "Time by module" });
    this.figures = el("p", { class: "figures" });
    this.whole = el("button", { type: "button", hidden: true, onclick: () => this.zoom(this.tree) },
      "show all");
    root.append(el("h2", {}, "Time by module"),
      el("div", { class: "tools" }, this.figures, el("span", { class: "push" }, this.whole)), this.frame);
    view.on((what) => this.update(what));
  }

  update(what) {
    if ("method" in what) {
      this.tree = this.grow(view.method);
      this.zoom(this.tree);
    } else this.mark();
  }

  // What a node is drawn with: its milliseconds, or its estimated cost where nothing was measured.
  value(node) {
    if (view.method.times) return node.ids.length && node.ids.some((id) => view.method.timings.has(id)) ?
      0 : node.ms || 0;
    return node.ids.length && node.ids.some((id) => view.method.nodes.get(id).cost) ? 0 :
      node.cost || this.covered(node);
  }

  // The cost of a delegate that only the calls that it took tell of.
  covered({ instruction, part }) {
    if (part || instruction.kind !== "delegate") return 0;
    return (view.method.coverage || []).filter((call) => call.part === instruction.delegate)
      .reduce((sum, call) => sum + call.cost, 0) / view.method.delegates[instruction.delegate].calls.length;
  }

  grow(method) {
    const tree = { name: method.name, value: 0, children: [], depth: 0, up: null, groups: new Map() };
    const child = (up, name, key, more) => {
      let found = up.groups.get(key);
      if (!found) {
        found = { name, value: 0, children: [], up, depth: up.depth + 1, groups: new Map(), ...more };
        up.groups.set(key, found);
        up.children.push(found);
      }
      return found;
    };
    for (const node of method.nodes.values()) {
      const value = this.value(node);
      if (!(value > 0)) continue;
      let at = tree;
      for (const part of node.module ? node.module.split(".") : []) at = child(at, part, `module ${part}`);
      if (node.part) {
        const ops = operatorsOf(node.sources).join(", ");
        if (ops) at = child(at, ops, `operators ${node.id}`, { id: node.id });
      }
      at = child(at, node.part ? node.part.name : node.title, node.id, { id: node.id });
      for (; at; at = at.up) at.value += value;
    }
    this.place(tree, 0);
    return tree;
  }

  place(frame, start) {
    frame.start = start;
    for (const one of frame.children) {
      this.place(one, start);
      start += one.value;
    }
  }

  zoom(frame) {
    const { method } = view;
    this.top = frame;
    this.whole.hidden = frame === this.tree;
    const { times } = method;
    const rest = times ? times.ms - this.tree.value : 0;
    const source = !times ? "Estimated from the sizes in the file, on one core; a trace has times." :
      `${times.ms ? `${duration(times.ms)} a run` : `${duration(this.tree.value)} in operators`}, mean of ${
        plural(times.runs, "run")}${rest > 0 && times.ms ? `; ${duration(rest)} in no operator` : ""}.`;
    const lost = times && times.unknown ?
      ` The trace is of another program: ${times.unknown[0]}.` : "";
    this.figures.replaceChildren(source, lost ? el("span", { class: "bad" }, lost) : "");
    this.draw();
  }

  draw() {
    const { top } = this;
    const boxes = [];
    let deepest = 0;
    const put = (frame, left, width, depth) => {
      deepest = Math.max(deepest, depth);
      boxes.push(this.box(frame, left, width, depth));
    };
    const above = [];
    for (let up = top; up; up = up.up) above.unshift(up);
    for (const up of above) put(up, 0, 1, up.depth);
    const waiting = [...top.children];
    while (waiting.length) {
      const frame = waiting.pop();
      const width = frame.value / (top.value || 1);
      if (width < NARROW) continue;
      put(frame, (frame.start - top.start) / (top.value || 1), width, frame.depth);
      waiting.push(...frame.children);
    }
    this.frame.style.height = `${(deepest + 1) * ROW}px`;
    this.frame.replaceChildren(...(this.tree.value ? boxes : [el("p", { class: "empty" },
      view.method.times ? "The trace has no times of this method." : "The file does not tell any work.")]));
    this.mark();
  }

  box(frame, left, width, depth) {
    const node = frame.id === undefined ? null : view.method.nodes.get(frame.id);
    const box = el("button", {
      type: "button", class: `frame ${node ? `k-${node.family}` : "module"}`,
      style: `left:${(left * 100).toFixed(4)}%;width:${(width * 100).toFixed(4)}%;top:${depth * ROW}px`,
      onclick: () => {
        tip.hide();
        this.zoom(frame);
        if (node) view.select(node.id);
      },
      onpointermove: (event) => tip.show(event, this.describe(frame, node)),
      onpointerleave: () => tip.hide(),
    }, width * this.frame.clientWidth > LEGIBLE ? frame.name : "");
    box.frame = frame;
    return box;
  }

  describe(frame, node) {
    const path = [];
    for (let up = frame; up && up.up; up = up.up) path.unshift(up.name);
    const { times } = view.method;
    return el("div", {}, el("strong", {}, path.join(" › ") || frame.name),
      facts([times ? "time" : "estimated", duration(times ? frame.value : frame.value / 1000)],
        ["share", percent(frame.value, this.tree.value)],
        ["of what is above", frame.up ? percent(frame.value, frame.up.value) : ""],
        ["node", node ? idText(node.id) : ""],
        ["Python", node && node.sources.length ? sourceText(node.sources[0]) : ""]));
  }

  mark() {
    const { hits, selected } = view;
    for (const box of this.frame.children) {
      const { id } = box.frame || {};
      box.classList.toggle("on", id !== undefined && id === selected);
      box.classList.toggle("dim", id !== undefined && hits !== null && !hits.has(id));
    }
  }
}
