// Draws the traces in #waterfall-data, one for each [data-waterfall]: a row per direction of a link and per stalled core or channel, with zoom.
"use strict";
(() => {
  const LANE = 34, NAMES = 132, NARROW_NAMES = 84, AXIS = 26; // height of a row, width of its name, height of the axis, in pixels
  const LEAST = 0.5; // shortest time shown, in nanoseconds
  const all = JSON.parse(document.getElementById("waterfall-data").textContent);
  function begin(root, data) {
    const box = root.querySelector(".waterfall"), info = root.querySelector(".waterfall-info");
    const whole = [0, Math.max(data.end, LEAST)];
    let [from, until] = whole;
    let selected = null;
    const svgElement = (name, attributes, text) => {
      const made = document.createElementNS("http://www.w3.org/2000/svg", name);
      for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
      if (text !== undefined) made.textContent = text;
      return made;
    };
    const svg = svgElement("svg", {});
    const tip = document.createElement("div");
    tip.className = "tip";
    box.append(svg, tip);
    const time = (ns) => (ns >= 10000 ? `${+(ns / 1000).toFixed(2)} us` : `${+ns.toFixed(2)} ns`);
    const describe = (tlp) => [
      `${data.lanes[tlp.lane]}: ${tlp.words}`,
      `request ${tlp.request}${tlp.bytes === null ? "" : `, ${tlp.bytes} B`}`,
      `on the link ${time(tlp.starts)} to ${time(tlp.ends)}, arrives at ${time(tlp.arrives)}`,
      ...(tlp.cause === null ? [] : [`waited ${time(tlp.starts - tlp.ready)} for: ${tlp.cause}`]),
      ...(tlp.damaged ? ["LCRC error: it is replayed"] : []),
    ];
    const describeWait = (wait) => [`${data.lanes[wait.lane]}: waits for ${wait.cause}`, `${time(wait.from)} to ${time(wait.until)}`];
    const names = () => (box.clientWidth < 480 ? NARROW_NAMES : NAMES);
    const x = (at) => names() + ((at - from) / (until - from)) * (box.clientWidth - names() - 4);
    const step = () => {
      const rough = (until - from) / Math.max(2, (box.clientWidth - names()) / 90), power = 10 ** Math.floor(Math.log10(rough));
      return [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough);
    };
    function draw() {
      if (!box.clientWidth) return; // folded
      const width = box.clientWidth, height = data.lanes.length * LANE + AXIS, made = [];
      svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
      svg.setAttribute("width", width);
      svg.setAttribute("height", height);
      const every = step();
      for (let at = Math.ceil(from / every) * every; at <= until; at += every) {
        made.push(svgElement("path", { class: "grid", d: `M${x(at).toFixed(1)} 0V${height - AXIS}` }));
        made.push(svgElement("text", { x: x(at).toFixed(1), y: height - 8, "text-anchor": "middle" }, time(at)));
      }
      const bar = (item, lane, a, b, top, tall, className, number) => {
        if (b < from || a > until) return;
        const left = Math.max(x(a), names()), right = Math.min(x(b), width - 4);
        if (right < names()) return;
        const rect = svgElement("rect", { class: className, x: left.toFixed(2), y: lane * LANE + top, width: Math.max(right - left, 0.75).toFixed(2), height: tall });
        if (number !== undefined) rect.dataset[item] = number;
        made.push(rect);
      };
      data.waits.forEach((wait, number) => bar("wait", wait.lane, wait.from, wait.until, 7, 20, `cause-${wait.colour}`, number));
      data.tlps.forEach((tlp, number) => {
        bar("tlp", tlp.lane, tlp.ends, tlp.arrives, 15, 2, "flight", number);
        if (tlp.cause !== null) bar("tlp", tlp.lane, tlp.ready, tlp.starts, 28, 4, `pale cause-${tlp.colour}`, number);
        const kind = tlp.damaged ? "damaged" : tlp.kind.startsWith("Cpl") ? "completion" : tlp.posted ? "posted" : "request";
        bar("tlp", tlp.lane, tlp.starts, tlp.ends, 7, 18, `tlp ${kind}${number === selected ? " selected" : ""}`, number);
        const room = x(tlp.ends) - x(tlp.starts);
        if (room > 34 && tlp.ends > from && tlp.starts < until && x(tlp.starts) >= names()) {
          made.push(svgElement("text", { class: "inside", x: (x(tlp.starts) + 3).toFixed(1), y: tlp.lane * LANE + 20 }, room > 90 && tlp.bytes !== null ? `${tlp.kind} ${tlp.bytes} B` : tlp.kind));
        }
      });
      data.lanes.forEach((name, lane) => {
        made.push(svgElement("rect", { class: "names", x: 0, y: lane * LANE, width: names(), height: LANE }));
        made.push(svgElement("text", { class: "name", x: 2, y: lane * LANE + 20 }, name));
        made.push(svgElement("path", { class: "grid", d: `M0 ${(lane + 1) * LANE}H${width}` }));
      });
      svg.replaceChildren(...made);
      box.dataset.from = from;
      box.dataset.until = until;
    }
    function show(a, b) {
      const span = Math.min(Math.max(b - a, LEAST), whole[1]);
      from = Math.min(Math.max(a, 0), whole[1] - span);
      until = from + span;
      draw();
    }
    const zoom = (factor, around = (from + until) / 2) => show(around - (around - from) * factor, around + (until - around) * factor);
    const move = (part) => show(from + (until - from) * part, until + (until - from) * part);
    function select(number) {
      if (!data.tlps.length) return;
      selected = Math.min(Math.max(number, 0), data.tlps.length - 1);
      const tlp = data.tlps[selected];
      info.textContent = `TLP ${selected + 1} of ${data.tlps.length}. ${describe(tlp).join("; ")}`;
      if (tlp.starts < from || tlp.ends > until) { const half = (until - from) / 2; show(tlp.starts - half, tlp.starts + half); } else draw();
    }
    const acts = {
      in: () => zoom(0.5), out: () => zoom(2), left: () => move(-0.25), right: () => move(0.25), all: () => show(...whole),
      next: () => select(selected === null ? 0 : selected + 1), previous: () => select(selected === null ? 0 : selected - 1),
    };
    for (const button of root.querySelectorAll("[data-act]")) button.addEventListener("click", acts[button.dataset.act]);
    const keys = { "+": "in", "=": "in", "-": "out", ArrowLeft: "left", ArrowRight: "right", 0: "all", Home: "all", n: "next", p: "previous" };
    box.addEventListener("keydown", (event) => {
      const act = keys[event.key];
      if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      acts[act]();
    });
    const timeAt = (event) => from + ((event.clientX - box.getBoundingClientRect().left - names()) / (box.clientWidth - names() - 4)) * (until - from);
    box.addEventListener("wheel", (event) => {
      // Among other parts of a page, the wheel scrolls until the waterfall is selected.
      if (root.tagName === "DETAILS" && document.activeElement !== box) return;
      event.preventDefault();
      zoom(event.deltaY < 0 ? 0.8 : 1.25, Math.min(Math.max(timeAt(event), from), until));
    }, { passive: false });
    let dragged = null;
    box.addEventListener("pointerdown", (event) => { dragged = { at: event.clientX, from, until }; });
    addEventListener("pointerup", () => { dragged = null; });
    box.addEventListener("pointermove", (event) => {
      if (dragged && event.buttons) {
        const shift = ((dragged.at - event.clientX) / (box.clientWidth - names() - 4)) * (dragged.until - dragged.from);
        show(dragged.from + shift, dragged.until + shift);
        return;
      }
      const { tlp, wait } = event.target.dataset ?? {};
      const lines = tlp !== undefined ? describe(data.tlps[tlp]) : wait !== undefined ? describeWait(data.waits[wait]) : null;
      tip.style.display = lines ? "block" : "none";
      if (!lines) return;
      const span = (text) => { const made = document.createElement("span"); made.textContent = text; return made; };
      tip.replaceChildren(...lines.map(span));
      const place = box.getBoundingClientRect();
      tip.style.left = `${Math.max(0, Math.min(event.clientX - place.left + 12, box.clientWidth - tip.offsetWidth))}px`;
      tip.style.top = `${event.clientY - place.top + 14}px`;
    });
    box.addEventListener("pointerleave", () => { tip.style.display = "none"; });
    box.addEventListener("click", (event) => { if (event.target.dataset?.tlp !== undefined) select(Number(event.target.dataset.tlp)); });
    // A table without rows gets those of the TLPs when it is unfolded.
    const body = root.querySelector("tbody");
    const list = () => {
      if (!body || body.rows.length) return;
      for (const tlp of data.tlps) {
        const row = body.insertRow(), head = document.createElement("th");
        head.scope = "row";
        head.className = "num";
        head.textContent = tlp.starts.toFixed(1);
        row.append(head);
        const waited = tlp.cause === null ? "" : (tlp.starts - tlp.ready).toFixed(1);
        [(tlp.ends - tlp.starts).toFixed(1), tlp.arrives.toFixed(1), data.lanes[tlp.lane], tlp.words, tlp.bytes ?? "", tlp.cause ?? "", waited].forEach((text, place) => {
          const cell = row.insertCell();
          cell.textContent = text;
          if ([0, 1, 4, 6].includes(place)) cell.className = "num";
        });
      }
    };
    root.addEventListener("toggle", list);
    addEventListener("beforeprint", list);
    new ResizeObserver(draw).observe(box);
    draw();
  }
  for (const root of document.querySelectorAll("[data-waterfall]")) begin(root, all[Number(root.dataset.waterfall)]);
})();
