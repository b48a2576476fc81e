"use strict";
// Draws the profile in #data as a graph that can be searched, zoomed and narrowed down; needs nothing but this page.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const $ = (id) => document.getElementById(id);
  const ROW = 17;
  const view = { program: -1, thread: -1, cpu: -1, from: 0, to: Infinity, layer: -1, color: data.before ? "change" : "layer", path: [], search: null };
  const programs = [...new Set(data.threads.map((thread) => thread[3]))];
  const programOf = data.threads.map((thread) => programs.indexOf(thread[3]));
  const KERNEL = "#e0915c", USER = "#86b36b", JIT = "#b9c46a";

  // Samples are columns: time in ms, core, thread, stack, weight.
  const wanted = (set, i) =>
    (view.program < 0 || programOf[set.thread[i]] === view.program) && (view.thread < 0 || set.thread[i] === view.thread) &&
    (view.cpu < 0 || set.cpu[i] === view.cpu) && (view.layer < 0 || data.stacks[set.stack[i]][0] === view.layer) &&
    (set !== data.now || (set.time[i] >= view.from && set.time[i] <= view.to));

  const leaf = (key, name, parent) => ({ key, name, parent, depth: parent ? parent.depth + 1 : 0, now: 0, before: 0, count: 0, own: 0, layers: null, below: new Map() });

  // The tree of all wanted samples; weights of the two recordings apart.
  function grow() {
    const root = leaf("", "all", null);
    root.layers = new Map();
    for (const side of data.before ? ["now", "before"] : ["now"]) {
      const set = data[side];
      for (let i = 0; i < set.stack.length; i++) {
        if (!wanted(set, i)) continue;
        const weight = set.weight[i], stack = data.stacks[set.stack[i]], layer = stack[0];
        let node = root;
        const visit = () => {
          node[side] += weight;
          if (side === "now" || !data.now.stack.length) node.layers.set(layer, (node.layers.get(layer) || 0) + weight);
          if (side === "now") node.count++;
        };
        visit();
        const step = (key, name) => {
          let next = node.below.get(key);
          if (!next) { next = leaf(key, name, node); next.layers = new Map(); node.below.set(key, next); }
          node = next;
          visit();
        };
        step("p" + programOf[set.thread[i]], programs[programOf[set.thread[i]]]);
        for (let at = 1; at < stack.length; at++) step(stack[at], data.frames[stack[at]][0]);
        if (side === "now") node.own += weight;
      }
    }
    return root;
  }

  const layerOf = (node) => {
    let best = -1, most = -1;
    for (const [layer, weight] of node.layers) if (weight > most) { best = layer; most = weight; }
    return best;
  };
  const frameOf = (node) => (typeof node.key === "number" ? data.frames[node.key] : null);
  const share = (part, whole) => (whole > 0 ? part / whole : 0);
  const percent = (value) => (100 * value).toFixed(value < 0.0995 ? 2 : 1) + " %";
  const hit = (node) => view.search && (view.search.test(node.name) || (frameOf(node) && view.search.test(frameOf(node)[1])));

  function colorOf(node, root) {
    if (view.color === "change") {
      const change = share(node.now, root.now) - share(node.before, root.before);
      const strength = Math.min(1, Math.sqrt(Math.abs(change) * 5));
      const fade = Math.round(232 - 150 * strength);
      return change > 0 ? `rgb(240,${fade},${fade})` : `rgb(${fade},${fade + 10},240)`;
    }
    if (view.color === "kind") {
      const frame = frameOf(node);
      return !frame ? "#c3c9d0" : frame[2] === 0 ? KERNEL : frame[2] === 1 ? USER : JIT;
    }
    const layer = data.layers[layerOf(node)];
    return layer ? layer.color : "#c3c9d0";
  }

  // Dark colours take light letters (relative luminance, roughly).
  const inkOf = (color) => {
    const parts = color.startsWith("#") ? [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16)) : color.match(/\d+/g).map(Number);
    return 0.299 * parts[0] + 0.587 * parts[1] + 0.114 * parts[2] < 140 ? "#ffffff" : "#14181c";
  };

  let root = grow(), boxes = new Map();

  // The node that is zoomed to: as far down the remembered path as there is one.
  function zoomed() {
    let node = root;
    for (const key of view.path) { const next = node.below.get(key); if (!next) break; node = next; }
    return node;
  }

  function draw() {
    const graph = $("graph"), width = graph.clientWidth, top = zoomed(), both = (node) => (data.before ? Math.max(share(node.now, root.now), share(node.before, root.before)) : node.now);
    const rows = [];
    boxes = new Map();
    let deepest = 0;
    const box = (node, x, w, above) => {
      deepest = Math.max(deepest, node.depth);
      const element = document.createElement("div"), color = colorOf(node, root);
      element.style.cssText = `left:${x.toFixed(2)}px;top:${node.depth * ROW}px;width:${w.toFixed(2)}px;background:${color};color:${inkOf(color)}`;
      if (w > 25) element.textContent = node.name;
      element.className = (above ? "above " : "") + (hit(node) ? "found" : view.search && !above ? "faint" : "");
      element.tabIndex = w > 25 ? 0 : -1;
      boxes.set(element, node);
      rows.push(element);
    };
    for (let node = top.parent; node; node = node.parent) box(node, 0, width, true);
    const left = [[top, 0, width]];
    while (left.length) {
      const [node, x, w] = left.pop();
      box(node, x, w, false);
      const children = [...node.below.values()].sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
      const sum = Math.max(children.reduce((total, child) => total + both(child), 0), both(node));
      let at = x;
      for (const child of children) {
        const wide = sum > 0 ? (w * both(child)) / sum : 0;
        if (wide >= 0.6) left.push([child, at, wide]);
        at += wide;
      }
    }
    graph.style.height = (deepest + 1) * ROW + 4 + "px";
    graph.replaceChildren(...rows);
    tell(null);
    drawTime();
    drawLayers();
  }

  // Weight of what the search found; a function below another that was found counts once.
  function found() {
    let sum = 0;
    const left = [root];
    while (left.length) {
      const node = left.pop();
      if (hit(node)) sum += node.now;
      else left.push(...node.below.values());
    }
    return sum;
  }

  function tell(node) {
    const told = $("told");
    told.replaceChildren();
    const line = (bold, text) => {
      const row = document.createElement("div"), name = document.createElement("b");
      name.textContent = bold;
      row.append(name, text);
      told.append(row);
    };
    const shown = node || zoomed(), frame = frameOf(shown), layer = data.layers[layerOf(shown)];
    const where = frame ? ` in ${frame[1]}` : "";
    let text = ` ${percent(share(shown.now, root.now))} of what is shown, ${shown.count} samples; itself ${percent(share(shown.own, root.now))}`;
    if (data.before) text += `; before ${percent(share(shown.before, root.before))}`;
    line(shown.name, `${where}:${text}${layer ? "; mostly " + layer.title : ""}`);
    if (view.search) line("found: ", percent(share(found(), root.now)));
  }

  function drawTime() {
    if (!$("time")) return;
    const canvas = $("time").querySelector("canvas");
    const width = (canvas.width = canvas.clientWidth), height = (canvas.height = canvas.clientHeight), bars = Math.max(1, Math.floor(width / 4));
    const counts = new Float64Array(bars);
    const set = data.now, { from, to } = view;
    view.from = 0; view.to = Infinity;
    for (let i = 0; i < set.time.length; i++) if (wanted(set, i)) counts[Math.min(bars - 1, Math.floor((set.time[i] / data.duration_ms) * bars))]++;
    view.from = from; view.to = to;
    const most = counts.reduce((a, b) => Math.max(a, b), 1), pen = canvas.getContext("2d");
    pen.fillStyle = "#7d93ab";
    counts.forEach((count, i) => pen.fillRect(i * 4, height - (height * count) / most, 3, (height * count) / most));
    const brush = $("brush"), on = view.to !== Infinity;
    brush.style.display = on ? "block" : "none";
    if (on) { brush.style.left = (100 * view.from) / data.duration_ms + "%"; brush.style.width = (100 * (view.to - view.from)) / data.duration_ms + "%"; }
  }

  function drawLayers() {
    const sums = new Map(), layer = view.layer;
    view.layer = -1;
    let all = 0;
    for (let i = 0; i < data.now.stack.length; i++) {
      if (!wanted(data.now, i)) continue;
      const index = data.stacks[data.now.stack[i]][0];
      sums.set(index, (sums.get(index) || 0) + data.now.weight[i]);
      all += data.now.weight[i];
    }
    view.layer = layer;
    const buttons = [...sums].sort((a, b) => b[1] - a[1]).map(([index, weight]) => {
      const button = document.createElement("button"), color = document.createElement("i");
      color.style.background = data.layers[index].color;
      button.append(color, `${data.layers[index].title} ${percent(share(weight, all))}`);
      button.setAttribute("aria-pressed", String(view.layer === index));
      button.onclick = () => { view.layer = view.layer === index ? -1 : index; change(); };
      return button;
    });
    $("layers").replaceChildren(...buttons);
  }

  function change() { root = grow(); draw(); }

  function option(select, value, text) {
    const item = document.createElement("option");
    item.value = value;
    item.textContent = text;
    select.append(item);
  }

  function fill() {
    option($("program"), -1, "all programs");
    programs.forEach((name, i) => option($("program"), i, name));
    threads();
    option($("cpu"), -1, "all cores");
    [...new Set(data.now.cpu)].sort((a, b) => a - b).forEach((cpu) => option($("cpu"), cpu, "core " + cpu));
    if (data.before) option($("color"), "change", "change");
    option($("color"), "layer", "layer");
    option($("color"), "kind", "kernel or program");
  }

  function threads() {
    $("thread").replaceChildren();
    option($("thread"), -1, "all threads");
    data.threads.forEach((thread, i) => { if (view.program < 0 || programOf[i] === view.program) option($("thread"), i, `${thread[2]} (${thread[0]}/${thread[1]})`); });
  }

  const graph = $("graph");
  const zoom = (element) => {
    let node = boxes.get(element);
    if (!node) return;
    view.path = [];
    for (; node.parent; node = node.parent) view.path.unshift(node.key);
    draw();
  };
  graph.onclick = (event) => zoom(event.target);
  graph.onkeydown = (event) => { if (event.key === "Enter") zoom(event.target); };
  graph.onmouseover = (event) => { const node = boxes.get(event.target); if (node) tell(node); };
  graph.addEventListener("focusin", (event) => { const node = boxes.get(event.target); if (node) tell(node); });
  graph.onmouseleave = () => tell(null);
  $("program").onchange = (event) => { view.program = +event.target.value; view.thread = -1; threads(); change(); };
  $("thread").onchange = (event) => { view.thread = +event.target.value; change(); };
  $("cpu").onchange = (event) => { view.cpu = +event.target.value; change(); };
  $("color").onchange = (event) => { view.color = event.target.value; draw(); };
  $("search").oninput = (event) => {
    const text = event.target.value;
    view.search = null;
    if (text) {
      try { view.search = new RegExp(text, "i"); } catch { view.search = new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "i"); }
    }
    draw();
  };
  $("reset").onclick = () => {
    Object.assign(view, { program: -1, thread: -1, cpu: -1, from: 0, to: Infinity, layer: -1, path: [], search: null });
    for (const id of ["program", "thread", "cpu"]) $(id).value = -1;
    $("search").value = "";
    threads();
    change();
  };
  document.onkeydown = (event) => { if (event.key === "Escape") { view.path = []; draw(); } };
  const time = $("time");
  let begin = null;
  const at = (event) => { const area = time.getBoundingClientRect(); return (Math.min(1, Math.max(0, (event.clientX - area.left) / area.width))) * data.duration_ms; };
  time.onpointerdown = (event) => { begin = at(event); time.setPointerCapture(event.pointerId); };
  time.onpointermove = (event) => {
    if (begin === null) return;
    [view.from, view.to] = [Math.min(begin, at(event)), Math.max(begin, at(event))];
    drawTime();
  };
  time.onpointerup = () => {
    begin = null;
    // A click without a drag takes the choice back.
    if (view.to - view.from < data.duration_ms / 200) { view.from = 0; view.to = Infinity; }
    change();
  };
  if (!data.duration_ms) time.remove();
  window.addEventListener("resize", draw);
  fill();
  draw();
})();
