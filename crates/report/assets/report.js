// Draws the data of the page (#plots). Computes only positions on the screen.
"use strict";
(() => {
  const COLOURED = 6; // number of methods with a colour; others are grey until hovered
  const LAST_LABEL = 48; // width of the longest label below the x axis, "512 MiB", in pixels; half of it is right of its tick
  const FORMULAS_AT_FIRST = 6; // formulas are initially shown for at most this many methods
  const MARKS = ["●", "■", "▲", "◆", "✚", "✖"]; // marks of lines that have one: colour alone is not enough
  const DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3]];
  const plots = JSON.parse(document.getElementById("plots").textContent);
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const element = (tag, className, text) => {
    const made = document.createElement(tag);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const size = (bytes) => {
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let place = 0;
    while (bytes >= 1024 && bytes % 1024 === 0 && place < 4) { bytes /= 1024; place += 1; }
    return `${bytes} ${units[place]}`;
  };
  const plain = (value) => (value >= 1e6 || value < 1e-4 ? value.toExponential(0) : String(+value.toPrecision(3)));

  // Powers of two, as many as fit.
  const sizeTicks = (low, high, room) => {
    const all = [];
    for (let power = Math.ceil(Math.log2(low)); 2 ** power <= high; power += 1) all.push(2 ** power);
    const step = [1, 2, 4, 8].find((step) => all.length / step <= room) || 16;
    return all.filter((_, place) => place % step === 0);
  };
  // Several ticks per power of ten, or only the powers if there are many.
  const valueTicks = (low, high) => {
    const decades = Math.log10(high / low);
    const mantissas = decades > 4 ? [1] : decades > 1.2 ? [1, 3] : [1, 2, 3, 5, 7];
    const ticks = [];
    for (let power = Math.floor(Math.log10(low)); 10 ** power <= high; power += 1) {
      for (const mantissa of mantissas) {
        const tick = Number(`${mantissa}e${power}`);
        if (tick >= low && tick <= high) ticks.push(tick);
      }
    }
    return ticks;
  };

  function draw(box, data) {
    const canvas = box.querySelector(".canvas");
    const tip = element("div", "tip");
    let focused = null;
    const isSeen = data.lines.map(() => true);
    const hasFormulas = !data.only_formulas && data.lines.some((line) => line.formulas.some((value) => value !== null));
    let showsFormulas = hasFormulas && data.lines.length <= FORMULAS_AT_FIRST;
    const positive = (value) => (value !== null && value > 0 ? value : null);
    const stroke = (place) => (place < COLOURED ? colour(`--line-${place}`) : colour(focused === place ? "--ink" : "--other"));

    const values = data.lines.flatMap((line) => line.values).concat(data.limits).map(positive).filter((value) => value !== null);
    if (values.length === 0) { canvas.append(element("p", "remark", "No figures to plot.")); return; }
    const lowest = Math.min(...values) * 0.7, highest = Math.max(...values) * 2.2;
    let low = lowest, high = highest;
    const left = data.sizes[0] / 1.25, right = data.sizes[data.sizes.length - 1] * 1.25;

    const path = (u, ys) => {
      const drawn = new Path2D();
      let isDown = false;
      ys.forEach((value, place) => {
        if (positive(value) === null) return;
        const x = u.valToPos(data.sizes[place], "x", true), y = u.valToPos(value, "y", true);
        if (isDown) drawn.lineTo(x, y); else drawn.moveTo(x, y);
        isDown = true;
      });
      return drawn;
    };
    const clipped = (u, work) => {
      u.ctx.save();
      u.ctx.beginPath();
      u.ctx.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
      u.ctx.clip();
      work(u.ctx, devicePixelRatio);
      u.ctx.restore();
    };
    const bySize = (values) => data.sizes.map((bytes, place) => [bytes, positive(values[place] ?? null)]).filter((point) => point[1] !== null);
    const limits = bySize(data.limits);
    let moved = []; // limits on a changed platform
    // A limit reaches from edge to edge.
    const limitPoints = (u, of) => {
      const points = of.map(([bytes, value]) => [u.valToPos(bytes, "x", true), u.valToPos(value, "y", true)]);
      return [[u.bbox.left, points[0][1]], ...points, [u.bbox.left + u.bbox.width, points[points.length - 1][1]]];
    };
    const shadeBeyond = (u) => limits.length && clipped(u, (ctx) => {
      const points = limitPoints(u, limits);
      ctx.fillStyle = colour("--beyond");
      ctx.beginPath();
      ctx.moveTo(u.bbox.left, u.bbox.top);
      points.forEach(([x, y]) => ctx.lineTo(x, y));
      ctx.lineTo(u.bbox.left + u.bbox.width, u.bbox.top);
      ctx.fill();
    });
    const markOf = (line) => MARKS[line.mark % MARKS.length];
    const drawMarks = (u, ctx, scale) => {
      ctx.font = `${13 * scale}px system-ui, sans-serif`;
      ctx.textAlign = "center";
      ctx.textBaseline = "middle";
      data.lines.forEach((line, place) => {
        if (line.mark === undefined || !isSeen[place]) return;
        ctx.fillStyle = stroke(place);
        ctx.globalAlpha = focused === null || focused === place ? 1 : 0.25;
        line.values.forEach((value, at) => {
          if (positive(value) !== null) ctx.fillText(markOf(line), u.valToPos(data.sizes[at], "x", true), u.valToPos(value, "y", true));
        });
      });
      ctx.globalAlpha = 1;
    };
    const drawOver = (u) => clipped(u, (ctx, scale) => {
      drawMarks(u, ctx, scale);
      if (showsFormulas) {
        ctx.setLineDash([3 * scale, 4 * scale]);
        ctx.lineWidth = scale;
        data.lines.forEach((line, place) => {
          if (!isSeen[place]) return;
          ctx.strokeStyle = stroke(place);
          ctx.globalAlpha = focused === null || focused === place ? 1 : 0.25;
          ctx.stroke(path(u, line.formulas));
        });
        ctx.globalAlpha = 1;
      }
      // Formulas with changed keys, moved by sliders.
      ctx.setLineDash([]);
      ctx.lineWidth = 3 * scale;
      data.lines.forEach((line, place) => {
        if (!isSeen[place] || !line.live) return;
        ctx.strokeStyle = stroke(place);
        ctx.globalAlpha = 0.55;
        ctx.stroke(path(u, line.live));
      });
      ctx.globalAlpha = 1;
      const drawLimit = (points, width) => {
        ctx.strokeStyle = ctx.fillStyle = colour("--ink");
        ctx.setLineDash([7 * scale, 5 * scale]);
        ctx.lineWidth = width * scale;
        ctx.beginPath();
        points.forEach(([x, y], place) => (place ? ctx.lineTo(x, y) : ctx.moveTo(x, y)));
        ctx.stroke();
      };
      if (moved.length) {
        ctx.globalAlpha = 0.55;
        drawLimit(limitPoints(u, moved), 3.5);
        ctx.globalAlpha = 1;
      }
      if (!limits.length) return;
      const points = limitPoints(u, limits);
      drawLimit(points, 1.5);
      ctx.font = `600 ${12 * scale}px system-ui, sans-serif`;
      ctx.textAlign = "right";
      ctx.textBaseline = "bottom";
      const last = points[points.length - 1];
      ctx.fillText(data.limit_name || "limit", last[0] - 8 * scale, last[1] - 4 * scale);
    });

    const showTip = (u) => {
      const place = u.cursor.idx;
      const line = focused === null ? null : data.lines[focused];
      if (!line || place === null || place === undefined || !line.tips[place] || positive(line.values[place]) === null || u.cursor.left < 0) {
        tip.style.display = "none";
        return;
      }
      tip.replaceChildren(element("b", "", `${line.name}, ${data.size_names[place]}`), ...line.tips[place].map((text) => element("span", "", text)));
      tip.style.display = "block";
      const x = u.valToPos(data.sizes[place], "x"), y = u.valToPos(line.values[place], "y");
      const isLeft = x > u.over.clientWidth / 2;
      tip.style.left = `${isLeft ? Math.max(0, x - tip.offsetWidth - 14) : Math.min(x + 14, u.over.clientWidth - tip.offsetWidth)}px`;
      tip.style.top = `${Math.max(0, Math.min(y - 20, u.over.clientHeight - tip.offsetHeight))}px`;
    };

    const font = "12px system-ui, sans-serif";
    const axis = (more) => ({
      stroke: () => colour("--faint"), font, labelFont: font, filter: (_, ticks) => ticks,
      grid: { stroke: () => colour("--grid"), width: 1 }, ticks: { show: false }, ...more,
    });
    const width = () => Math.max(240, canvas.clientWidth);
    const height = () => (width() < 480 ? 290 : 370);
    const u = new uPlot({
      width: width(), height: height(), legend: { show: false }, focus: { alpha: 0.25 }, padding: [8, LAST_LABEL / 2, 0, 0],
      cursor: { focus: { prox: 28 }, drag: { x: false, y: false }, y: false, points: { size: 8 } },
      scales: { x: { time: false, distr: 3, log: 2, range: () => [left, right] }, y: { distr: 3, log: 10, range: () => [low, high] } },
      axes: [
        axis({ size: 32, splits: () => sizeTicks(left, right, Math.max(2, (width() - 90) / 64)), values: (_, ticks) => ticks.map(size) }),
        axis({ splits: () => valueTicks(low, high), values: (_, ticks) => ticks.map(plain), size: 58, label: data.unit, labelSize: 20 }),
      ],
      series: [{}, ...data.lines.map((line, place) => ({
        label: line.name, spanGaps: true, stroke: () => stroke(place), width: place < COLOURED ? 2 : 1,
        dash: line.mark === undefined ? [] : DASHES[Math.floor(line.mark / MARKS.length) % DASHES.length],
        points: { show: line.mark === undefined && place < COLOURED || line.mark === undefined && line.values.filter((value) => value !== null).length < 2, size: 6, fill: () => stroke(place) },
      }))],
      hooks: {
        drawAxes: [shadeBeyond], draw: [drawOver], setCursor: [showTip],
        setSeries: [(_, place, opts) => { if (opts && "focus" in opts) { focused = place ? place - 1 : null; mark(); } }],
      },
    }, [data.sizes, ...data.lines.map((line) => line.values.map(positive))], canvas);
    u.over.append(tip);
    u.over.addEventListener("mouseleave", () => { tip.style.display = "none"; });

    const keys = box.querySelector(".keys"), tools = element("div", "tools"), list = element("div", "list");
    const buttons = data.lines.map((line, place) => {
      const button = element("button");
      button.type = "button";
      const dash = element("span", place < COLOURED ? "dash" : "dash thin");
      const tone = place < COLOURED ? `var(--line-${place})` : "var(--other)";
      if (line.mark === undefined) dash.style.background = tone;
      else { dash.className = "key-mark"; dash.textContent = markOf(line); dash.style.color = tone; }
      button.append(dash, element("span", "key-name", line.name), element("span", "", line.largest === null ? "" : line.largest));
      button.addEventListener("click", () => show(place, !isSeen[place]));
      button.addEventListener("mouseenter", () => u.setSeries(place + 1, { focus: true }));
      button.addEventListener("mouseleave", () => u.setSeries(null, { focus: true }));
      list.append(button);
      return button;
    });
    function mark() { buttons.forEach((button, place) => { button.style.background = place === focused ? "var(--raised)" : ""; }); }
    function show(place, is) {
      isSeen[place] = is;
      buttons[place].setAttribute("aria-pressed", String(is));
      u.setSeries(place + 1, { show: is });
    }
    data.lines.forEach((_, place) => buttons[place].setAttribute("aria-pressed", "true"));
    if (data.lines.length > 1) {
      const choose = (text, wanted) => {
        const button = element("button", "", text);
        button.type = "button";
        button.addEventListener("click", () => data.lines.forEach((_, place) => show(place, wanted(place))));
        tools.append(button);
      };
      choose("all", () => true);
      if (data.lines.length > COLOURED) choose(`best ${COLOURED}`, (place) => place < COLOURED);
      choose("none", () => false);
    }
    if (hasFormulas) {
      const label = element("label"), check = element("input");
      check.type = "checkbox";
      check.checked = showsFormulas;
      check.addEventListener("change", () => { showsFormulas = check.checked; u.redraw(); });
      label.append(check, "formulas (dashed)");
      tools.append(label);
    }
    keys.append(tools, list);

    // Draws these formulas and limits beside the figures, by line and size; null for none.
    box.showLive = (lines, limited) => {
      moved = lines ? bySize(limited) : [];
      data.lines.forEach((line, place) => { line.live = lines && lines[place] ? data.sizes.map((_, size) => lines[place][size] ?? null) : null; });
      const shown = data.lines.flatMap((line) => line.live || []).map(positive).filter((value) => value !== null).concat(moved.map((point) => point[1]));
      low = Math.min(lowest, ...shown.map((value) => value * 0.7));
      high = Math.max(highest, ...shown.map((value) => value * 1.5));
      if (u.scales.y.min !== low || u.scales.y.max !== high) u.setData(u.data); else u.redraw(false);
    };

    new ResizeObserver(() => { if (width() !== u.width) u.setSize({ width: width(), height: height() }); }).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => u.redraw());
  }

  for (const box of document.querySelectorAll("[data-plot]")) draw(box, plots[Number(box.dataset.plot)]);
})();
