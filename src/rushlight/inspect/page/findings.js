// What keeps a model from being exported: each finding with its place, the code around it, what to
// do, and the nodes at that place in the graphs that could be captured.

function findingTiles() {
  const findings = report.findings || [];
  const blocking = findings.filter(({ blocks }) => blocks).length;
  const others = findings.length - blocking;
  return [
    tile("Export", blocking ? "is blocked" : "works", blocking ? plural(blocking, "blocker") : "",
      blocking ? "warn" : "good"),
    tile("Not as in Python", count(others), others ? plural(others, "warning") : "nothing"),
    tile("Graphs", count(report.methods.length), report.methods.length ?
      "that could be captured" : "nothing could be captured"),
  ];
}

function codeOf({ code = [], first, source }) {
  return code.map((text, i) => el("span", {
    class: first + i === source.line ? "line here" : "line" },
  el("span", { class: "index" }, String(first + i)), `${text}\n`));
}

function stackOf(finding, nodes) {
  if (finding.stack) return finding.stack;
  const known = nodes.map(([method]) => ((report.stacks || {})[method.name] || {})[finding.source.handle]);
  return known.find(Boolean) || "";
}

function findingCard(finding) {
  const source = finding.source || {};
  const nodes = nodesAt(finding);
  const stack = stackOf(finding, nodes);
  const more = (title, text) => (text ? el("details", {}, el("summary", {}, title), el("pre", {}, text)) : null);
  return el("article", { class: `finding ${finding.blocks ? "blocks" : ""}` },
    el("h3", {}, el("span", { class: finding.blocks ? "bad" : "hint" }, finding.kind), ` ${finding.what}`),
    el("p", {}, finding.problem),
    facts(["line", source.file ? `${source.file}:${source.line}` : ""], ["function", source.function],
      ["module", source.module], ["operator", source.operator], ["debug handle", source.handle],
      ["method", report.methods.length > 1 ? finding.method : ""]),
    (finding.code || []).length ? el("pre", { class: "code" }, codeOf(finding)) :
      source.text ? el("pre", { class: "code" }, source.text) : null,
    el("p", { class: "advice" }, finding.advice, el("span", { class: "hint" }, ` ${finding.page}`)),
    nodes.length ? el("p", { class: "links" }, nodes.slice(0, MAX_LINKS).map(([method, node]) =>
      goButton(method.name, node.id, `${method.name} ${idText(node.id)} ${node.title}`))) : null,
    more("Stack trace", stack), more("What torch says", finding.torch));
}

function drawFindings(root) {
  const findings = report.findings || [];
  if (!findings.length) return;
  const cards = new Map(findings.map((finding) => [finding, findingCard(finding)]));
  root.append(el("h2", {}, "What is in the way ", el("span", { class: "hint" },
    plural(findings.length, "finding"))), ...cards.values());
  tables.push({
    title: "What is in the way",
    rowsAbout: (method, node) =>
      findings.filter((finding) => nodesAt(finding).some(([, one]) => one === node)),
    reveal(finding) {
      for (const other of document.querySelectorAll(".finding.on")) other.classList.remove("on");
      cards.get(finding).classList.add("on");
      cards.get(finding).scrollIntoView({ block: "center" });
    },
  });
}
