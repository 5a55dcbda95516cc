// Draws the map of a fleet: a row a node, a square a GPU; columns of nodes side by side. Reads only this page.
(() => {
  "use strict";
  const source = document.getElementById("gpus");
  const canvas = document.getElementById("fleet");
  if (!source || !canvas) return;
  const { step, nodes, standings, cases, gpus } = JSON.parse(source.textContent);
  const chosen = document.getElementById("shown");
  const reading = document.getElementById("reading");
  const legend = document.getElementById("legend");
  document.querySelector("#map .controls").hidden = false;

  const width = Math.max(1, ...gpus.map((gpu) => gpu[1] + 1));
  const SIDE = nodes.length > 200 ? 8 : nodes.length > 40 ? 12 : 18;
  const GAP = 1;
  const block = width * (SIDE + GAP) + 8;
  const seats = new Map(gpus.map((gpu) => [gpu[0] * width + gpu[1], gpu]));
  let columns = 1, rows = nodes.length, cursor = null;

  const token = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const mix = (from, to, share) => `color-mix(in srgb, ${to} ${Math.round(100 * share)}%, ${from})`;
  const tones = () => ({
    slow: token("--regressed"), invalid: token("--invalid"), missing: token("--line"), unjudged: token("--inconclusive"),
    healthy: mix(token("--paper"), token("--calm"), 0.55), fast: token("--unchanged"), line: token("--line"), ink: token("--ink"), paper: token("--paper"),
  });

  function tone(gpu, shown, colours) {
    if (shown < 0) return colours[standings[gpu[2]]];
    const change = gpu[3][shown];
    if (change === null) return standings[gpu[2]] === "missing" ? colours.missing : colours.line;
    const share = Math.min(1, Math.abs(change * step) / (2 * cases[shown].margin));
    return mix(colours.line, change > 0 ? colours.slow : colours.fast, share);
  }

  function draw() {
    const room = canvas.parentElement.clientWidth;
    columns = Math.max(1, Math.min(nodes.length, Math.floor(room / block)));
    rows = Math.ceil(nodes.length / columns);
    const scale = window.devicePixelRatio || 1;
    const [wide, high] = [columns * block, rows * (SIDE + GAP)];
    canvas.width = wide * scale;
    canvas.height = high * scale;
    canvas.style.width = `${wide}px`;
    canvas.style.height = `${high}px`;
    const pen = canvas.getContext("2d");
    pen.scale(scale, scale);
    const colours = tones();
    const shown = Number(chosen.value);
    for (const gpu of gpus) {
      const [x, y] = corner(gpu);
      pen.fillStyle = tone(gpu, shown, colours);
      pen.fillRect(x, y, SIDE, SIDE);
      if (shown >= 0 && gpu[4].includes(shown)) outline(pen, x, y, colours.slow);
    }
    if (cursor) {
      const [x, y] = corner(cursor);
      outline(pen, x, y, colours.ink);
    }
    explain(shown, colours);
  }

  function corner(gpu) {
    const column = Math.floor(gpu[0] / rows);
    return [column * block + gpu[1] * (SIDE + GAP), (gpu[0] - column * rows) * (SIDE + GAP)];
  }

  function outline(pen, x, y, colour) {
    pen.strokeStyle = colour;
    pen.lineWidth = 2;
    pen.strokeRect(x + 1, y + 1, SIDE - 2, SIDE - 2);
  }

  function explain(shown, colours) {
    const entries = shown < 0
      ? standings.map((name) => [colours[name], name])
      : [[colours.fast, "faster than its peers"], [colours.line, "as its peers"], [colours.slow, `slower; outlined where it counts as slow`]];
    legend.replaceChildren(...entries.map(([colour, text]) => {
      const item = document.createElement("li");
      const mark = document.createElement("span");
      mark.style.background = colour;
      item.append(mark, text);
      return item;
    }));
  }

  function read(gpu) {
    cursor = gpu;
    const shown = Number(chosen.value);
    const change = shown < 0 ? null : gpu[3][shown];
    const moved = change === null ? "" : `, ${change > 0 ? "+" : ""}${(100 * change * step).toFixed(2)} % of its peers`;
    reading.textContent = `${nodes[gpu[0]]}/${gpu[1]}: ${standings[gpu[2]]}${moved}`;
    draw();
  }

  canvas.addEventListener("mousemove", (event) => {
    const column = Math.floor(event.offsetX / block);
    const node = column * rows + Math.floor(event.offsetY / (SIDE + GAP));
    const gpu = seats.get(node * width + Math.floor((event.offsetX - column * block) / (SIDE + GAP)));
    if (gpu && gpu !== cursor) read(gpu);
  });
  canvas.addEventListener("keydown", (event) => {
    const moves = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -width, ArrowDown: width };
    if (!(event.key in moves)) return;
    event.preventDefault();
    const now = cursor ? cursor[0] * width + cursor[1] : -moves[event.key];
    const next = seats.get(now + moves[event.key]);
    if (next) read(next);
  });
  chosen.addEventListener("change", draw);
  window.addEventListener("resize", draw);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  draw();
})();
