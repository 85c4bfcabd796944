// The graph as a drawing, delegates opened: the whole method unless it is huge, else what surrounds
// the chosen node. Drag to move, buttons or Ctrl and the wheel to zoom.

const MAX_DRAWN = 6000; // nodes of a method that is drawn whole
const MAX_AROUND = 90; // nodes around the chosen one otherwise
const MAX_AT_ONCE = 400; // nodes; of a larger drawing only what is seen is made
const EDGES = 200; // in one path
const FAR = 3.2; // units in a pixel, from which on texts cannot be read

class Drawing {
  constructor(root) {
    this.root = root;
    this.opened = true;
    this.timed = null;
    this.stage = el("div", { class: "stage" });
    this.note = el("p", { class: "hint" });
    const button = (text, title, act) =>
      el("button", { type: "button", title, "aria-label": title, onclick: act }, text);
    this.open = button("delegates", "Show the operators inside delegates", () => {
      this.opened = !this.opened;
      this.draw();
      this.mark();
      this.centre();
    });
    this.heat = button("time", "Colour by time", () => {
      this.timed = !this.timed;
      this.paint();
    });
    root.append(
      el("div", { class: "zoom" }, this.heat, this.open,
        button("−", "Zoom out", () => this.zoom(1.3)), button("+", "Zoom in", () => this.zoom(1 / 1.3)),
        button("⤢", "Show all", () => this.fit(true))),
      this.stage, this.note);
    this.listen();
    view.on((what) => this.update(what));
  }

  update(what) {
    const { method } = view;
    if ("method" in what) {
      this.whole = method.nodes.size <= MAX_DRAWN;
      this.slowest = Math.max(...[...method.nodes.values()].filter(({ ids }) => !ids.length)
        .map(({ ms }) => ms || 0), 0);
      this.timed = this.slowest > 0;
      this.heat.hidden = !this.timed;
      this.open.hidden = ![...method.nodes.values()].some(({ opens }) => opens);
    }
    if ("method" in what || ("selected" in what && !this.whole)) this.draw();
    this.mark();
    if ("selected" in what) this.centre();
  }

  // The id of the box that stands for a node: its own, or that of its delegate.
  boxOf(id) {
    const index = instructionOf(id);
    const { opens } = view.method.nodes.get(index);
    return this.opened && opens ? id : index;
  }

  isDrawn({ id, opens, part }) {
    if (part) return this.opened && view.method.nodes.get(instructionOf(id)).opens;
    return !(this.opened && opens);
  }

  // The nodes to draw: all, or those a few edges away from the chosen one.
  chosen() {
    const { method, selected } = view;
    const all = [...method.nodes.values()].filter((node) => this.isDrawn(node));
    if (this.whole || !all.length) return all;
    const start = method.nodes.has(selected) ? selected : all[0].id;
    const found = new Set([start]);
    let edge = [start];
    while (edge.length && found.size < MAX_AROUND) {
      const next = [];
      for (const id of edge) {
        for (const other of [...method.nodes.get(id).from, ...method.consumers.get(id)]) {
          if (found.size < MAX_AROUND && !found.has(other)) { found.add(other); next.push(other); }
        }
      }
      edge = next;
    }
    return all.filter(({ id }) => found.has(id));
  }

  draw() {
    const chosen = this.chosen();
    this.open.setAttribute("aria-pressed", String(this.opened));
    if (!chosen.length) {
      this.stage.replaceChildren(el("p", { class: "empty" }, "This method runs no instructions."));
      this.note.textContent = "";
      this.canvas = null;
      return;
    }
    const { nodes, edges } = this.parts(chosen);
    const plan = layered(nodes, edges);
    this.size(plan.nodes);
    this.places = plan.nodes.sort((a, b) => a.y - b.y);
    this.boxes = new Map(); // that are made, by id
    this.at = new Map(plan.nodes.map((node) => [node.id, node]));
    this.curves = plan.edges.map(({ points, long }, i) => ({ ends: edges[i], path: curve(points), long }));
    this.lines = svg("g", {}, this.paths());
    this.chosenLines = svg("g", {});
    this.layer = svg("g", {});
    this.canvas = svg("svg", { role: "img", "aria-label": "Drawing of the graph" },
      this.lines, this.chosenLines, this.layer);
    this.stage.replaceChildren(this.canvas);
    const long = this.curves.filter((edge) => edge.long).length;
    this.note.textContent = (this.whole ? "" :
      `Too large to draw whole: ${plural(chosen.length, "node")} around the chosen one. `) + (long ?
      `${plural(long, "edge")} over more than ${MAX_BENT} rows: drawn for the chosen node.` : "");
    this.fit(false);
    this.paint();
  }

  // Edges, many in one element. Long ones would hide the others, and are drawn for the chosen node.
  paths() {
    const elements = [];
    const short = this.curves.filter(({ long }) => !long);
    for (let i = 0; i < short.length; i += EDGES) {
      const d = short.slice(i, i + EDGES).map(({ path }) => path).join("");
      elements.push(svg("path", { class: "edge", d }));
    }
    return elements;
  }

  parts(chosen) {
    const { method } = view;
    const order = new Map(chosen.map(({ id }, i) => [id, i]));
    const edges = new Map();
    const link = (from, to) => edges.set(`${from}>${to}`, [from, to]);
    const slots = new Map(method.inputs.map((slot) => [slot.value, slot]));
    const nodes = chosen.map((node) => ({ id: node.id, node }));
    for (const { id, from, given } of chosen) {
      for (const other of from) {
        const box = this.boxOf(other);
        if (order.has(box) && order.get(box) < order.get(id)) link(box, id);
      }
      for (const value of given) {
        const slot = slots.get(value) || slots.get(method.values[value].base);
        if (slot) link(`in ${slot.value}`, id);
      }
    }
    const used = new Set([...edges.values()].map(([from]) => from));
    for (const slot of method.inputs) {
      if (used.has(`in ${slot.value}`)) nodes.push({ id: `in ${slot.value}`, slot, kind: "input" });
    }
    method.outputs.forEach((slot, k) => {
      const by = method.writerOf(slot.value);
      if (by < 0) return;
      const ids = method.writersIn(by, slot.value).map((id) => this.boxOf(id));
      const drawn = ids.filter((id) => order.has(id));
      if (!drawn.length) return;
      nodes.push({ id: `out ${k}`, slot, kind: "output" });
      for (const id of drawn) link(id, `out ${k}`);
    });
    return { nodes, edges: [...edges.values()] };
  }

  // Makes the boxes that are seen, with texts if they can be read.
  make() {
    const { clientWidth: width, clientHeight: height } = this.stage;
    const far = this.scale > FAR;
    if (this.far !== far || this.boxes.size > 4 * MAX_AT_ONCE) {
      this.layer.replaceChildren();
      this.boxes.clear();
      this.far = far;
    }
    const all = this.places.length <= MAX_AT_ONCE;
    const margin = BOX.width;
    const [left, right] = [this.x - margin, this.x + width * this.scale + margin];
    const [top, bottom] = [this.y - margin, this.y + height * this.scale + margin];
    const made = [];
    for (const node of this.places) {
      if (!all && node.y > bottom) break;
      const seen = all || (node.y >= top && node.x >= left && node.x <= right);
      if (!seen || this.boxes.has(node.id)) continue;
      const box = far ? this.plainBox(node) : this.box(node);
      this.boxes.set(node.id, box);
      this.markBox(node.id, box);
      this.paintBox(node, box);
      made.push(box);
    }
    this.layer.append(...made);
  }

  group({ id, node, kind }, ...children) {
    return svg("g", {
      class: `box k-${node ? node.family : kind}${node && node.part ? " inner" : ""}${
        node && isBlocked(node) ? " blocked" : ""}`, "data-id": id,
      onclick: node && (() => !this.moved && view.select(node.id)),
    }, ...children);
  }

  plainBox(place) {
    const { x, y } = place;
    return this.group(place, svg("rect", { x: x - BOX.width / 2, y: y - BOX.height / 2,
      width: BOX.width, height: BOX.height }), svg("title", {}, this.about(place)));
  }

  box(place) {
    const { id, node, slot, x, y } = place;
    const left = x - BOX.width / 2, top = y - BOX.height / 2;
    const cut = (text, letters) => (text.length > letters ? `${text.slice(0, letters - 1)}…` : text);
    const title = node ? node.title : slot.name;
    const time = node && node.ms !== undefined ? duration(node.ms) : "";
    const group = this.group(place,
      svg("rect", { x: left, y: top, width: BOX.width, height: BOX.height, rx: node ? 6 : 20 }),
      svg("rect", { class: "stripe", x: left, y: top + 7, width: 4, height: BOX.height - 14, rx: 2 }),
      svg("text", { class: "title", x: left + 14, y: top + 17 }, cut(title, 20)),
      svg("text", { x: left + 14, y: top + 32 }, cut(node ? node.out : slot.text, time ? 14 : 25)),
      svg("title", {}, this.about(place)));
    const corner = (dy, text) => svg("text", {
      class: "number", x: left + BOX.width - 8, y: top + dy, "text-anchor": "end" }, text);
    if (node && title.length <= 14 && !node.part) group.append(corner(17, idText(id)));
    if (time) group.append(corner(32, time));
    return group;
  }

  about({ id, node, slot }) {
    if (!node) return `${slot.name}: ${slot.text}`;
    return [`${idText(id)} ${node.op}`, node.module, node.ms === undefined ? "" : duration(node.ms),
      ...node.sources.map(sourceText)].filter(Boolean).join("\n");
  }

  // Colours: by the kind of work, or by time.
  paint() {
    this.heat.setAttribute("aria-pressed", String(Boolean(this.timed)));
    if (this.canvas) for (const [id, box] of this.boxes) this.paintBox(this.at.get(id), box);
  }

  paintBox({ node }, box) {
    box.classList.toggle("heat", Boolean(this.timed));
    const share = node && this.slowest ? Math.sqrt((node.ms || 0) / this.slowest) : 0;
    box.style.setProperty("--heat", `${(share * 100).toFixed(0)}%`);
  }

  size(nodes) {
    let [left, right, top, bottom] = [Infinity, -Infinity, Infinity, -Infinity];
    for (const { x, y } of nodes) {
      left = Math.min(left, x);
      right = Math.max(right, x);
      top = Math.min(top, y);
      bottom = Math.max(bottom, y);
    }
    const pad = 24;
    this.bounds = {
      left: left - BOX.width / 2 - pad, top: top - BOX.height / 2 - pad,
      width: right - left + BOX.width + 2 * pad, height: bottom - top + BOX.height + 2 * pad,
    };
  }

  // All of it; or the top of it, as much as can still be read.
  fit(all) {
    if (!this.canvas) return;
    const { clientWidth: width, clientHeight: height } = this.stage;
    const whole = Math.max(this.bounds.width / width, this.bounds.height / height);
    this.scale = all ? Math.max(whole, 0.8) : Math.max(Math.min(whole, 1.25), 0.8);
    const middle = this.bounds.width > width * this.scale ? this.places[0].x :
      this.bounds.left + this.bounds.width / 2;
    this.x = middle - (width * this.scale) / 2;
    this.y = this.bounds.height > height * this.scale ? this.bounds.top :
      this.bounds.top + (this.bounds.height - height * this.scale) / 2;
    this.look();
  }

  look() {
    const { clientWidth: width, clientHeight: height } = this.stage;
    this.canvas.setAttribute("viewBox",
      `${this.x} ${this.y} ${width * this.scale} ${height * this.scale}`);
    this.make();
  }

  zoom(by, x = this.stage.clientWidth / 2, y = this.stage.clientHeight / 2) {
    if (!this.canvas) return;
    const { clientHeight: height, clientWidth: width } = this.stage;
    const whole = Math.max(this.bounds.width / width, this.bounds.height / height);
    const scale = Math.min(Math.max(this.scale * by, 0.3), Math.max(whole, 12));
    this.x += x * (this.scale - scale);
    this.y += y * (this.scale - scale);
    this.scale = scale;
    this.look();
  }

  centre() {
    const { selected, method } = view;
    if (!this.canvas || !method.nodes.has(selected)) return;
    const ids = [this.boxOf(selected), ...method.nodes.get(selected).ids];
    const at = this.at.get(ids.find((id) => this.at.has(id)));
    if (!at) return;
    const { clientWidth: width, clientHeight: height } = this.stage;
    const x = (at.x - this.x) / this.scale, y = (at.y - this.y) / this.scale;
    if (x > 60 && x < width - 60 && y > 40 && y < height - 40) return;
    this.x = at.x - (width / 2) * this.scale;
    this.y = at.y - (height / 2) * this.scale;
    this.look();
  }

  isSelected(id) {
    const { selected, method } = view;
    if (!method.nodes.has(selected)) return false;
    return id === this.boxOf(selected) || method.nodes.get(selected).ids.includes(id);
  }

  markBox(id, box) {
    const { hits } = view;
    box.classList.toggle("on", this.isSelected(id));
    box.classList.toggle("dim", hits !== null && !hits.has(id));
  }

  mark() {
    if (!this.canvas) return;
    for (const [id, box] of this.boxes) this.markBox(id, box);
    const on = this.curves.filter(({ ends }) => ends.some((id) => this.isSelected(id)));
    this.chosenLines.replaceChildren(...on.map(({ path }) => svg("path", { class: "edge on", d: path })));
  }

  listen() {
    let from = null;
    this.stage.addEventListener("pointerdown", (event) => {
      if (event.button !== 0 || !this.canvas) return;
      from = { x: event.clientX, y: event.clientY, left: this.x, top: this.y };
      this.moved = false;
    });
    addEventListener("pointermove", (event) => {
      if (!from || !this.canvas) return;
      const dx = event.clientX - from.x, dy = event.clientY - from.y;
      if (Math.hypot(dx, dy) > 4) this.moved = true;
      this.x = from.left - dx * this.scale;
      this.y = from.top - dy * this.scale;
      this.look();
    });
    addEventListener("pointerup", () => { from = null; });
    this.stage.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      const { left, top } = this.stage.getBoundingClientRect();
      this.zoom(Math.exp(event.deltaY / 300), event.clientX - left, event.clientY - top);
    }, { passive: false });
    new ResizeObserver(() => this.canvas && this.look()).observe(this.stage);
  }
}

function curve(points) {
  const half = BOX.height / 2;
  const ends = points.map(([x, y], i) =>
    [x, i === 0 ? y + half : i === points.length - 1 ? y - half : y].map(Math.round));
  let path = `M${ends[0][0]} ${ends[0][1]}`;
  for (let i = 1; i < ends.length; i += 1) {
    const [x0, y0] = ends[i - 1], [x1, y1] = ends[i];
    const middle = Math.round((y0 + y1) / 2);
    path += `C${x0} ${middle} ${x1} ${middle} ${x1} ${y1}`;
  }
  return path;
}
