// Moves formulas with sliders (#live, #live-module), and copies tables as CSV. Every figure is computed by the module.
"use strict";
(() => {
  const ROWS_AT_FIRST = 40; // rows of the table of formulas before "show all answers"
  const COLOURED = 6; // methods of a plot whose changed formula is drawn: those with a colour
  const element = (tag, className, text) => {
    const made = document.createElement(tag);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
  };

  // ---- copying

  const copied = async (button, text) => {
    const before = button.textContent;
    let isDone = true;
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const area = element("textarea");
      area.value = text;
      document.body.append(area);
      area.select();
      isDone = document.execCommand("copy");
      area.remove();
    }
    button.textContent = isDone ? "copied" : "cannot copy in this browser";
    setTimeout(() => { button.textContent = before; }, 1500);
  };
  const quoted = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const csv = (table) => table.csvOf?.() ?? Array.from(table.rows, (row) => Array.from(row.cells, (cell) => quoted(cell.textContent.trim())).join(",")).join("\n");
  for (const table of document.querySelectorAll(".numbers table, .live-figures, .glance, .advice, .map")) {
    const button = element("button", "copy", "copy as CSV"), tools = element("p", "tools");
    button.type = "button";
    button.addEventListener("click", () => copied(button, `${csv(table)}\n`));
    tools.append(button);
    table.parentElement.before(tools);
  }

  const data = document.getElementById("live");
  if (!data) return;
  const targets = JSON.parse(data.textContent);

  // ---- the module

  async function module() {
    const text = document.getElementById("live-module").textContent.trim();
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return WebAssembly.compile(await new Response(stream).arrayBuffer());
  }
  async function caller(compiled) {
    const { exports } = await WebAssembly.instantiate(compiled, {});
    return (name, message) => {
      const bytes = new TextEncoder().encode(JSON.stringify(message));
      const at = exports.room(bytes.length);
      new Uint8Array(exports.memory.buffer, at, bytes.length).set(bytes);
      const length = exports[name]();
      return JSON.parse(new TextDecoder().decode(new Uint8Array(exports.memory.buffer, exports.reply(), length)));
    };
  }

  // ---- the fragment: #what-if:<target>:<key>=<value>,...

  const PREFIX = "#what-if:";
  const encoded = (target, changes) =>
    PREFIX + encodeURIComponent(target) + ":" + changes.map(([key, value]) => `${encodeURIComponent(key)}=${encodeURIComponent(value)}`).join(",");
  function decoded(hash) {
    if (!hash.startsWith(PREFIX)) return null;
    try {
      const [target, list] = hash.slice(PREFIX.length).split(":");
      const changes = (list || "").split(",").filter(Boolean).map((one) => one.split("=").map(decodeURIComponent));
      return { target: decodeURIComponent(target), changes };
    } catch { return null; }
  }

  // ---- one target

  function begin(section, target, call) {
    const form = section.querySelector("form"), state = section.querySelector(".live-state");
    const body = section.querySelector("tbody"), of = section.querySelector(".of"), all = section.querySelector(".all");
    const more = section.querySelector(".more");
    const sliders = new Map(target.sliders.map((slider) => [slider.key, slider]));
    const controls = () => Array.from(form.elements).filter((control) => control.name);
    const panels = new Map(target.panels.map((panel, index) => [panel.place, { ...panel, index, changed: null }]));
    let changes = [], rows = [], isAll = false, isWaiting = false;

    const opened = call("open_page", { platform: target.platform, panels: target.panels.map(({ unit, points }) => ({ unit, points })) });
    if (opened.problem) { state.textContent = opened.problem; return; }

    const text = (control) => (control.type === "range" ? sliders.get(control.name).values[Number(control.value)] : control.value);
    function set(control, value) {
      if (control.type === "range") {
        const place = sliders.get(control.name).values.indexOf(value);
        if (place < 0) return false;
        control.value = String(place);
      } else {
        control.value = value;
      }
      return text(control) === value;
    }
    const own = (slider) => (slider.place === null ? "" : slider.values[slider.place]);
    function add(key) {
      const slider = sliders.get(key), id = `s-${section.id}-${key}`;
      const line = element("p", "slider"), label = element("label", "", key), input = element("input"), output = element("output");
      label.htmlFor = id;
      Object.assign(input, { type: "range", id, name: key, min: "0", max: String(slider.values.length - 1), step: "1" });
      input.value = String(slider.place);
      line.append(label, input, output);
      more.parentElement.before(line);
      for (const option of more.options) if (option.value === key) option.remove();
      more.value = "";
      return input;
    }

    // Formulas of some points of a panel on the changed platform, by point; null without a formula.
    function ask(panel, points) {
      const reply = call("ask", { panel: panel.index, points, changes });
      state.classList.toggle("bad", Boolean(reply.problem));
      if (reply.problem) { state.textContent = reply.problem; return null; }
      return new Map(points.map((point, place) => [point, reply.figures[place]]));
    }

    function table() {
      const panel = panels.get(Number(of.value));
      const shown = isAll ? panel.rows : panel.rows.slice(0, ROWS_AT_FIRST);
      rows = shown.map((row) => {
        const line = element("tr"), head = element("th", "", row.name);
        head.scope = "row";
        const cells = [row.size_name, row.figure ?? "", row.formula_text, "", "", "", ""].map((content, place) => element("td", place === 5 ? "" : "num", content));
        line.append(head, ...cells);
        return { line, changed: cells[3], difference: cells[4], bound: cells[5], limit: cells[6] };
      });
      body.replaceChildren(...rows.map((row) => row.line));
      all.hidden = shown.length === panel.rows.length;
    }
    function fill(panel) {
      const figures = ask(panel, rows.map((_, place) => place));
      rows.forEach((row, place) => {
        const figure = figures?.get(place), before = panel.rows[place].formula;
        const percent = figure && !figure.problem ? 100 * (figure.value / before - 1) : null;
        row.changed.textContent = figure ? figure.text ?? "none" : "";
        row.difference.textContent = percent === null ? "" : `${percent < 0.05 && percent > -0.05 ? "0.0" : (percent > 0 ? "+" : "") + percent.toFixed(1)} %`;
        row.bound.textContent = figure ? figure.bound ?? figure.problem ?? "" : "";
        row.limit.textContent = figure?.limit_text ?? "";
      });
    }

    // The plot or bars of a panel; only what can be seen is computed.
    function show(panel) {
      const part = document.querySelector(`[data-panel="${panel.place}"]`);
      const plot = part.querySelector("[data-plot]"), bars = part.querySelectorAll("[data-full] li");
      panel.changed = JSON.stringify(changes);
      if (plot?.showLive) {
        const points = panel.rows.map((row, place) => place).filter((place) => panel.rows[place].line < COLOURED || panel.limiting.includes(place));
        const figures = changes.length ? ask(panel, points) : null;
        const lines = [], limits = [];
        figures?.forEach((figure, place) => {
          const { line, size } = panel.rows[place];
          if (figure.problem) return;
          if (line < COLOURED) (lines[line] ||= [])[size] = figure.value;
          if (figure.limit !== null) limits[size] = Math.max(limits[size] ?? 0, figure.limit);
        });
        plot.showLive(figures && lines, limits);
      } else if (bars.length) {
        const full = Number(part.querySelector("[data-full]").dataset.full);
        const points = panel.rows.map((row, place) => place).filter((place) => panel.rows[place].line < bars.length);
        const figures = ask(panel, points);
        const limit = Math.max(0, ...Array.from(figures?.values() ?? [], (figure) => figure.limit ?? 0));
        figures?.forEach((figure, place) => {
          const bar = bars[panel.rows[place].line], mark = bar.querySelector(".mark.formula"), limited = bar.querySelector(".mark.limit");
          if (limited && limit) limited.style.left = `${Math.min(100, (100 * limit) / full)}%`;
          if (!mark || figure.problem) return;
          mark.style.left = `${Math.min(100, (100 * figure.value) / full)}%`;
          mark.title = `formula ${figure.text}`;
        });
      }
    }
    const seen = new Set();
    const observer = new IntersectionObserver((entries) => {
      for (const entry of entries) {
        const panel = panels.get(Number(entry.target.dataset.panel));
        if (entry.isIntersecting) seen.add(panel); else seen.delete(panel);
        if (entry.isIntersecting && panel.changed !== JSON.stringify(changes)) show(panel);
      }
    });
    for (const place of panels.keys()) observer.observe(document.querySelector(`[data-panel="${place}"]`));

    function update() {
      isWaiting = false;
      const began = performance.now();
      changes = [];
      for (const control of controls()) {
        const value = text(control), slider = sliders.get(control.name), isChanged = value !== own(slider);
        if (isChanged) changes.push([control.name, value]);
        control.closest(".slider").classList.toggle("changed", isChanged);
        if (control.type !== "range") continue;
        control.setAttribute("aria-valuetext", value);
        control.parentElement.querySelector("output").textContent = isChanged ? `${value} (${own(slider)})` : value;
      }
      state.textContent = changes.length ? `changed: ${changes.map(([key, value]) => `${key} = ${value}`).join(", ")}` : "as in the record";
      fill(panels.get(Number(of.value)));
      seen.forEach(show);
      section.dataset.tookMs = (performance.now() - began).toFixed(2);
    }
    function remember() {
      const hash = changes.length ? encoded(target.target, changes) : "";
      try { history.replaceState(null, "", hash || location.pathname + location.search); } catch { if (hash) location.hash = hash; }
    }
    // At most once per frame.
    const later = () => { if (!isWaiting) { isWaiting = true; requestAnimationFrame(update); } };

    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("input", (event) => { if (event.target.name) later(); });
    form.addEventListener("change", (event) => {
      if (event.target === more) {
        if (more.value) { add(more.value).focus(); update(); }
      } else { update(); remember(); }
    });
    of.addEventListener("change", () => { isAll = false; table(); update(); });
    all.addEventListener("click", () => { isAll = true; table(); update(); });
    form.querySelector(".reset").addEventListener("click", () => {
      for (const control of controls()) set(control, own(sliders.get(control.name)));
      update();
      remember();
    });
    form.querySelector(".link").addEventListener("click", (event) => {
      copied(event.target, location.href.split("#")[0] + encoded(target.target, changes));
    });

    // Sliders take the state of the fragment; a value that is no position of its slider is refused.
    function restore() {
      const wanted = decoded(location.hash);
      if (!wanted || wanted.target !== target.target) return;
      const refused = [];
      for (const control of controls()) set(control, own(sliders.get(control.name)));
      for (const [key, value] of wanted.changes) {
        const control = controls().find((one) => one.name === key) || (sliders.has(key) ? add(key) : null);
        if (!control || !set(control, value)) refused.push(`${key}=${value}`);
      }
      update();
      if (refused.length) state.textContent += `; the link has values that this page does not: ${refused.join(", ")}`;
      section.scrollIntoView();
    }
    addEventListener("hashchange", restore);
    addEventListener("beforeprint", () => panels.forEach(show));
    table();
    update();
    restore();
    section.dataset.isReady = "true";
  }

  const sections = Array.from(document.querySelectorAll("[data-live]"));
  module().then(async (compiled) => {
    for (const section of sections) begin(section, targets.find((target) => target.target === section.dataset.live), await caller(compiled));
  }).catch((error) => {
    for (const section of sections) {
      section.querySelector(".live-state").textContent = `The sliders need a browser with WebAssembly and DecompressionStream: ${error.message}`;
    }
  });
})();
