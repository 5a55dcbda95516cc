// The roofline to point at: uPlot has the axes and the zoom, the marks are drawn here. The still picture is hidden.
(() => {
  "use strict";
  const source = document.getElementById("roofline-numbers");
  const live = document.querySelector(".live");
  if (!source || !live) return;
  const chart = JSON.parse(source.textContent);
  const plot = live.querySelector(".plot");
  const told = live.querySelector(".told");
  const style = getComputedStyle(document.documentElement);
  const color = (name) => style.getPropertyValue(`--${name}`).trim();
  const tone = (one) => color(one.verdict === "not-comparable" ? "missing" : one.verdict || "unchanged");
  const FONT = "12px system-ui, sans-serif";
  const REACH = 30; // so near [px] a case is meant
  const MOST_NAMED = 12;
  let chosen = -1;

  const power = (value) => {
    for (const [factor, prefix] of [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]])
      if (value >= factor * 0.999) return `${+(value / factor).toPrecision(3)} ${prefix}`;
    return `${+value.toPrecision(3)}`;
  };

  // Powers of ten; where fewer than three are seen also their doubles and halves.
  const splits = (low, high) => {
    const found = [];
    const narrow = high / low < 1000;
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power += 1)
      for (const digit of narrow ? [1, 2, 5] : [1]) {
        const value = +`${digit}e${power}`;
        if (value >= low && value <= high) found.push(value);
      }
    return found;
  };

  // On a ground of the paper's colour, so that lines do not cross it out.
  const write = (ctx, text, x, y) => {
    const { strokeStyle, lineWidth } = ctx;
    ctx.lineJoin = "round";
    ctx.lineWidth = 4 * devicePixelRatio;
    ctx.strokeStyle = color("paper");
    ctx.strokeText(text, x, y);
    ctx.fillText(text, x, y);
    Object.assign(ctx, { strokeStyle, lineWidth });
  };

  const draw = (u) => {
    const { ctx, bbox } = u;
    const scale = devicePixelRatio;
    const x = (value) => u.valToPos(value, "x", true);
    const y = (value) => u.valToPos(value, "y", true);
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.font = FONT.replace("12", 12 * scale);
    for (const roof of chart.roofs) {
      const [[x0, y0], [x1, y1]] = roof.line;
      const measured = roof.kind === "measured";
      ctx.strokeStyle = color(measured ? "ink" : "muted");
      ctx.lineWidth = (measured ? 2 : 1) * scale;
      ctx.setLineDash(roof.kind === "theoretical" ? [6 * scale, 4 * scale] : []);
      ctx.beginPath();
      ctx.moveTo(x(x0), y(y0));
      ctx.lineTo(x(x1), y(y1));
      ctx.stroke();
    }
    ctx.setLineDash([]);
    for (const roof of chart.roofs.filter((one) => one.named)) {
      const [[x0, y0], [x1, y1]] = roof.line;
      ctx.fillStyle = color(roof.kind === "measured" ? "ink" : "muted");
      ctx.save();
      if (roof.memory) {
        const angle = Math.atan2(y(y1) - y(y0), x(x1) - x(x0));
        ctx.translate(x(Math.sqrt(x0 * x1)), y(Math.sqrt(y0 * y1)));
        ctx.rotate(angle);
        ctx.textAlign = "center";
        write(ctx, roof.name, 0, -7 * scale);
      } else {
        ctx.textAlign = "right";
        write(ctx, roof.name, bbox.left + bbox.width - 8 * scale, y(y1) - 7 * scale);
      }
      ctx.restore();
    }
    let named = 0;
    chart.cases.forEach((one, place) => {
      const [left, top] = [x(one.at[0]), y(one.at[1])];
      ctx.fillStyle = ctx.strokeStyle = tone(one);
      ctx.lineWidth = 1.5 * scale;
      if (one.was) {
        ctx.beginPath();
        ctx.arc(left, y(one.was), 5 * scale, 0, 2 * Math.PI);
        ctx.moveTo(left, y(one.was));
        ctx.lineTo(left, top);
        ctx.stroke();
      }
      ctx.beginPath();
      ctx.arc(left, top, (place === chosen ? 8 : 5) * scale, 0, 2 * Math.PI);
      ctx.fill();
      ctx.lineWidth = scale;
      ctx.strokeStyle = color(place === chosen ? "ink" : "paper");
      ctx.stroke();
      if ((one.moved && named < MOST_NAMED) || chart.cases.length <= MOST_NAMED) {
        named += 1;
        const right = left > bbox.left + bbox.width / 2;
        ctx.textAlign = right ? "right" : "left";
        write(ctx, one.id, left + (right ? -10 : 10) * scale, top + 16 * scale);
      }
    });
    ctx.restore();
  };

  const choose = (place) => {
    if (place === chosen) return;
    chosen = place;
    plot.style.cursor = place < 0 ? "" : "pointer";
    told.textContent = place < 0 ? "" : chart.cases[place].told;
    u.redraw(false);
  };

  const nearest = () => {
    const { left, top } = u.cursor;
    let [best, least] = [-1, REACH];
    chart.cases.forEach((one, place) => {
      const away = Math.hypot(u.valToPos(one.at[0], "x") - left, u.valToPos(one.at[1], "y") - top);
      if (away < least) [best, least] = [place, away];
    });
    return best;
  };

  const visit = () => {
    if (chosen < 0) return;
    const name = chart.cases[chosen].id;
    const row = Array.from(document.querySelectorAll("#cases th .id")).find((one) => one.textContent === name);
    if (!row) return;
    const head = row.closest("th");
    row.closest("tr").hidden = false;
    head.tabIndex = -1;
    head.scrollIntoView({ block: "center" });
    head.focus({ preventScroll: true });
  };

  const whole = () => {
    u.setScale("x", { min: chart.x[0], max: chart.x[1] });
    u.setScale("y", { min: chart.y[0], max: chart.y[1] });
  };
  const size = () => ({ width: Math.max(live.clientWidth, 280), height: Math.min(520, Math.max(300, innerHeight * 0.6)) });
  const axis = (label, values) => ({
    label,
    labelFont: FONT,
    font: FONT,
    stroke: () => color("muted"),
    grid: { stroke: () => color("line"), width: 1 },
    ticks: { stroke: () => color("line"), width: 1 },
    splits: (_, __, low, high) => splits(low, high),
    filter: (_, places) => places,
    values: (_, places) => places.map(values),
  });

  document.documentElement.classList.add("scripted");
  live.hidden = false;
  const u = new uPlot(
    {
      mode: 2,
      ...size(),
      legend: { show: false },
      cursor: {
        points: { show: false },
        drag: { x: true, y: true, uni: 20 },
        bind: { dblclick: () => () => (whole(), null) },
      },
      scales: {
        x: { time: false, distr: 3, range: (_, low, high) => [low, high] },
        y: { distr: 3, range: (_, low, high) => [low, high] },
      },
      axes: [axis("arithmetic intensity of the declared work [FLOP/byte]", (one) => `${+one.toPrecision(3)}`), { ...axis("rate [FLOP/s]", power), size: 64 }],
      series: [null, { paths: () => null, points: { show: false } }],
      hooks: { draw: [draw], setCursor: [() => choose(nearest())] },
    },
    [null, [chart.cases.map((one) => one.at[0]), chart.cases.map((one) => one.at[1])]],
    plot,
  );
  whole();

  plot.addEventListener("click", visit);
  plot.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      choose((chosen + step + chart.cases.length + (chosen < 0 && step < 0)) % chart.cases.length);
    } else if (event.key === "Enter") visit();
    else if (event.key === "Escape") whole();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => u.redraw(false));
  new ResizeObserver(() => u.setSize(size())).observe(live);
})();
