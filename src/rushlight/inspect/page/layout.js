// A layered drawing of a graph: every node below what it depends on, crossings and bends reduced.

const BOX = { width: 168, height: 40, column: 22, row: 34 };
const MAX_BENT = 40; // layers; a longer edge takes no room, and gets no bends

// nodes: [{id}], edges: [[from id, to id]] without cycles. Returns nodes with x, y (their centre),
// and for every edge a path of points, and whether it is too long to lead around other nodes.
function layered(nodes, edges) {
  const byNode = new Map(nodes.map((node) => [node.id, { node, above: [], below: [], layer: 0 }]));
  const links = edges.map(([from, to]) => [byNode.get(from), byNode.get(to)]);
  assignLayers(byNode, links);
  const { layers, chains } = withBends(byNode, links);
  orderLayers(layers);
  placeLayers(layers);
  for (const [y, layer] of layers.entries()) {
    for (const item of layer) item.y = y * (BOX.height + BOX.row) + BOX.height / 2;
  }
  const placed = [...byNode.values()].map(({ node, x, y }) => ({ ...node, x, y }));
  const edgesDrawn = chains.map((chain) => ({
    points: chain.map(({ x, y }) => [x, y]), long: chain[1].layer - chain[0].layer > 1,
  }));
  return { nodes: placed, edges: edgesDrawn };
}

// A node's layer is one below the lowest of what it depends on; sources sink to their first user.
function assignLayers(byNode, links) {
  const users = new Map(), waiting = new Map();
  for (const item of byNode.values()) { users.set(item, []); waiting.set(item, 0); }
  for (const [from, to] of links) {
    users.get(from).push(to);
    waiting.set(to, waiting.get(to) + 1);
  }
  const roots = [...byNode.values()].filter((item) => waiting.get(item) === 0);
  const ready = [...roots];
  for (let i = 0; i < ready.length; i += 1) {
    for (const to of users.get(ready[i])) {
      to.layer = Math.max(to.layer, ready[i].layer + 1);
      waiting.set(to, waiting.get(to) - 1);
      if (waiting.get(to) === 0) ready.push(to);
    }
  }
  for (const item of roots) {
    const below = users.get(item).map((to) => to.layer);
    if (below.length) item.layer = Math.min(...below) - 1;
  }
}

// Edges over several layers get an invisible node in each layer between, so that they bend
// around the nodes there.
function withBends(byNode, links) {
  const layers = [];
  const put = (item) => {
    while (layers.length <= item.layer) layers.push([]);
    layers[item.layer].push(item);
  };
  for (const item of byNode.values()) put(item);
  const chains = links.map(([from, to]) => {
    const chain = [from];
    if (to.layer - from.layer > MAX_BENT) return [from, to];
    for (let layer = from.layer + 1; layer < to.layer; layer += 1) {
      const bend = { bend: true, above: [], below: [], layer };
      put(bend);
      chain.push(bend);
    }
    chain.push(to);
    for (let i = 1; i < chain.length; i += 1) {
      chain[i].above.push(chain[i - 1]);
      chain[i - 1].below.push(chain[i]);
    }
    return chain;
  });
  return { layers, chains };
}

function orderLayers(layers) {
  const number = (layer) => layer.forEach((item, i) => { item.place = i; });
  layers.forEach(number);
  const sweep = (order, side) => {
    for (const layer of order) {
      for (const item of layer) {
        const near = item[side];
        item.weight = near.length ?
          near.reduce((sum, other) => sum + other.place, 0) / near.length : item.place;
      }
      layer.sort((a, b) => a.weight - b.weight);
      number(layer);
    }
  };
  const reversed = [...layers].reverse();
  for (let round = 0; round < 6; round += 1) {
    sweep(layers, "above");
    sweep(reversed, "below");
  }
}

// Each item moves to the middle of its neighbours as far as those beside it allow.
function placeLayers(layers) {
  const room = (a, b) => ((a.bend ? 14 : BOX.width) + (b.bend ? 14 : BOX.width)) / 2 + BOX.column;
  for (const layer of layers) {
    layer.forEach((item, i) => { item.x = i ? layer[i - 1].x + room(layer[i - 1], item) : 0; });
    const middle = layer.length ? (layer[0].x + layer[layer.length - 1].x) / 2 : 0;
    for (const item of layer) item.x -= middle;
  }
  const settle = (layer, sides) => {
    const want = layer.map((item) => {
      const near = sides.flatMap((side) => item[side]).map((other) => other.x).sort((a, b) => a - b);
      if (!near.length) return item.x;
      const half = near.length >> 1;
      return near.length % 2 ? near[half] : (near[half - 1] + near[half]) / 2;
    });
    spread(layer, want, room);
  };
  for (let round = 0; round < 8; round += 1) {
    const sides = round < 4 ? null : ["above", "below"];
    for (const layer of layers) settle(layer, sides || ["above"]);
    for (const layer of [...layers].reverse()) settle(layer, sides || ["below"]);
  }
}

// Positions in the given order that keep their distance, nearest to what is wanted in the sense of
// least squares: neighbours that would collide become a group that moves to its common middle.
function spread(layer, want, room) {
  const groups = [];
  let shift = 0;
  const shifts = layer.map((item, i) => {
    if (i) shift += room(layer[i - 1], item);
    return shift;
  });
  layer.forEach((_, i) => {
    let group = { sum: want[i] - shifts[i], count: 1 };
    while (groups.length && groups[groups.length - 1].sum / groups[groups.length - 1].count >=
        group.sum / group.count) {
      const last = groups.pop();
      group = { sum: last.sum + group.sum, count: last.count + group.count };
    }
    groups.push(group);
  });
  let i = 0;
  for (const { sum, count: members } of groups) {
    for (let k = 0; k < members; k += 1, i += 1) layer[i].x = sum / members + shifts[i];
  }
}
