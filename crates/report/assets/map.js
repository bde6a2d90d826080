// Shows one map of #map-data at a time. Figures and their texts come from the program; this script places and colours them.
"use strict";
(() => {
  const holder = document.getElementById("map-data"), table = document.querySelector("table.map");
  if (!table) return;
  const TEXT_COLUMNS = 14; // columns up to which a cell shows its figure
  const LOGARITHMIC = 8; // ratio of largest to least figure from which the scale is logarithmic
  const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  const data = JSON.parse(holder.textContent);
  const [choice, xChoice, yChoice, byChoice, onlyChoice] = ["view", "x", "y", "by", "only"].map((id) => document.getElementById(`map-${id}`));
  const [legend, info] = ["legend", "info"].map((id) => document.getElementById(`map-${id}`));
  const element = (tag, className, text) => {
    const made = document.createElement(tag);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const option = (value, text) => { const made = element("option", "", text); made.value = value; return made; };
  const shade = (share) => [[222, 8], [235, 69], [247, 148]].map(([light, dark]) => Math.round(light + (dark - light) * share));
  const letter = (order, bound) => { const at = order.indexOf(bound); return LETTERS[at] ?? String(at + 1); };
  let shown = null; // both axes, their numbers, and the cells

  // The single value of a third column, if one is chosen: the column and the place of the value.
  const only = () => (onlyChoice.value === "" ? null : onlyChoice.value.split(":").map(Number));
  const cubeOf = (view, axes) => view.cubes.find((one) => axes.every((axis) => one.axes.includes(axis)));
  // The map of two columns, whichever is horizontal.
  function cellsOf(view, x, y) {
    if (only()) {
      const [z, value] = only(), cube = cubeOf(view, [x, y, z]);
      const [atX, atY, atZ] = [x, y, z].map((axis) => cube.axes.indexOf(axis));
      return cube.cells.filter((cell) => cell[atZ] === value).map((cell) => [cell[atX], cell[atY], ...cell.slice(3)]);
    }
    const map = view.maps.find((one) => (one.x === x && one.y === y) || (one.x === y && one.y === x));
    if (!map) return [];
    return map.x === x ? map.cells : map.cells.map(([first, second, ...rest]) => [second, first, ...rest]);
  }
  function words(cell, x, y) {
    const [column, row, count, , text, range, bound, without, reason] = cell;
    const place = `${x.name} ${x.labels[column]}${y === x ? "" : `, ${y.name} ${y.labels[row]}`}`;
    const points = count > 1 ? ` (median of ${count} points${range ? `, ${range}` : ""})` : "";
    const missing = without ? `; ${without === 1 ? "1 point" : `${without} points`} without a figure: ${data.words[reason]}` : "";
    return `${place}: ${text === null ? "no figure" : text}${points}${bound === null ? "" : `; bound by ${data.words[bound]}`}${missing}`;
  }
  const onlyInWords = () => { const chosen = only(); return chosen ? `${data.axes[chosen[0]].name} ${data.axes[chosen[0]].labels[chosen[1]]}` : ""; };
  // Offers the values of every column that is no axis and has cells for them.
  function offer() {
    const view = data.views[Number(choice.value)], axes = [Number(xChoice.value), Number(yChoice.value)], before = onlyChoice.value;
    const others = axes[0] === axes[1] ? [] : view.axes.filter((axis) => !axes.includes(axis) && cubeOf(view, [...axes, axis]));
    onlyChoice.replaceChildren(option("", "all values"), ...others.map((axis) => {
      const group = document.createElement("optgroup");
      group.label = data.axes[axis].name;
      group.append(...data.axes[axis].labels.map((label, place) => option(`${axis}:${place}`, `${data.axes[axis].name} ${label}`)));
      return group;
    }));
    onlyChoice.value = before;
    if (onlyChoice.selectedIndex < 0) onlyChoice.value = "";
    onlyChoice.closest("p").hidden = others.length === 0;
  }
  function draw() {
    offer();
    const view = data.views[Number(choice.value)];
    const x = data.axes[Number(xChoice.value)], y = data.axes[Number(yChoice.value)];
    const cells = cellsOf(view, Number(xChoice.value), Number(yChoice.value));
    const figures = cells.map((cell) => cell[3]).filter((figure) => figure !== null);
    const least = Math.min(...figures), most = Math.max(...figures);
    const isLogarithmic = least > 0 && most > LOGARITHMIC * least;
    const at = (figure) => (isLogarithmic ? Math.log(figure) : figure);
    const share = (figure) => (most > least ? (at(figure) - at(least)) / (at(most) - at(least)) : 1);
    const bounds = cells.map((cell) => cell[6]).filter((bound) => bound !== null);
    const order = [...new Set(bounds)].sort((one, other) => bounds.filter((b) => b === other).length - bounds.filter((b) => b === one).length);
    const byBound = byChoice.value === "bound";
    const rows = y === x ? [0] : y.labels.map((_, row) => row).reverse();
    const known = new Map(cells.map((cell) => [`${cell[0]},${cell[1]}`, cell]));
    table.caption.textContent = `${view.title}: ${view.figure} by ${x.name}${y === x ? "" : ` and ${y.name}`}${only() ? `, ${onlyInWords()} only` : ""}`;
    const head = element("tr");
    const corner = element("th", "", y === x ? x.name : `${y.name} ↓ ${x.name} →`);
    corner.scope = "col";
    head.append(corner, ...x.labels.map((label) => { const made = element("th", "", label); made.scope = "col"; return made; }));
    table.tHead.replaceChildren(head);
    table.tBodies[0].replaceChildren(...rows.map((row) => {
      const line = element("tr"), name = element("th", "", y === x ? "" : y.labels[row]);
      name.scope = "row";
      line.append(name, ...x.labels.map((_, column) => {
        const cell = known.get(`${column},${row}`), made = element("td");
        made.tabIndex = -1;
        if (!cell) { made.className = "none"; made.setAttribute("aria-label", "no point"); made.dataset.words = "no point"; return made; }
        const [, , , figure, text, , bound] = cell;
        made.dataset.words = words(cell, x, y);
        made.setAttribute("aria-label", made.dataset.words);
        if (figure === null) { made.className = "missing"; made.textContent = "✕"; return made; }
        const mark = bound === null ? "" : letter(order, bound);
        made.textContent = x.labels.length > TEXT_COLUMNS ? (byBound ? mark : "") : byBound ? `${mark} ${text}` : `${text} ${mark}`.trim();
        if (byBound && bound !== null) {
          made.className = `cause-${order.indexOf(bound) % 10}`;
          made.style.color = "#14181c";
        } else {
          made.style.background = `rgb(${shade(share(figure)).join(",")})`;
          made.style.color = share(figure) > 0.5 ? "#fff" : "#222";
        }
        return made;
      }));
      return line;
    }));
    const first = table.tBodies[0].querySelector("td");
    if (first) first.tabIndex = 0;
    info.textContent = "";
    legend.replaceChildren();
    if (figures.length) {
      const text = (figure) => cells.find((cell) => cell[3] === figure)[4];
      const bar = element("span", "map-scale");
      bar.style.background = `linear-gradient(to right, ${[0, 0.25, 0.5, 0.75, 1].map((part) => `rgb(${shade(part).join(",")})`).join(",")})`;
      const better = view.is_more_better ? "more is better" : "less is better";
      legend.append(element("span", "", `${text(least)} `), bar, element("span", "", ` ${text(most)}, ${isLogarithmic ? "logarithmic" : "linear"}, ${better}`));
    }
    order.forEach((bound, place) => {
      const key = element("span", "map-key"), swatch = element("span", `swatch cause-${place % 10}`);
      if (byBound) key.append(swatch);
      key.append(`${letter(order, bound)}: ${data.words[bound]}`);
      legend.append(key);
    });
    shown = { x, y, cells, places: [xChoice.value, yChoice.value], only: only() };
  }
  const quoted = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  table.csvOf = () => {
    const { x, y, cells, only } = shown, third = only ? [data.axes[only[0]]] : [];
    const head = [x.name, ...(y === x ? [] : [y.name]), ...third.map((axis) => axis.name), "points", "median", "bound by", "points without a figure", "reason"];
    const lines = cells.map(([column, row, count, figure, , , bound, without, reason]) => [
      x.labels[column], ...(y === x ? [] : [y.labels[row]]), ...third.map((axis) => axis.labels[only[1]]), count, figure ?? "", data.words[bound] ?? "", without, data.words[reason] ?? "",
    ]);
    return [head, ...lines].map((line) => line.map((cell) => quoted(String(cell))).join(",")).join("\n");
  };
  function fill() {
    const { axes } = data.views[Number(choice.value)];
    for (const [select, place] of [[xChoice, 0], [yChoice, Math.min(1, axes.length - 1)]]) {
      select.replaceChildren(...axes.map((axis) => option(axis, data.axes[axis].name)));
      select.value = axes[place];
    }
    draw();
  }
  // Choosing the column of the other axis exchanges both.
  function choose(changed, other) {
    const { axes } = data.views[Number(choice.value)];
    if (changed.value === other.value && axes.length > 1) other.value = changed === xChoice ? shown.places[0] : shown.places[1];
    draw();
  }
  choice.addEventListener("change", fill);
  xChoice.addEventListener("change", () => choose(xChoice, yChoice));
  yChoice.addEventListener("change", () => choose(yChoice, xChoice));
  byChoice.addEventListener("change", draw);
  onlyChoice.addEventListener("change", draw);
  const tell = (event) => { const cell = event.target.closest("td"); if (cell) info.textContent = cell.dataset.words; };
  table.addEventListener("mouseover", tell);
  table.addEventListener("focusin", (event) => {
    const cell = event.target.closest("td");
    if (!cell) return;
    table.querySelectorAll('td[tabindex="0"]').forEach((one) => { one.tabIndex = -1; });
    cell.tabIndex = 0;
    tell(event);
  });
  table.addEventListener("keydown", (event) => {
    const cell = event.target.closest("td");
    if (!cell) return;
    const line = cell.parentElement, last = line.cells.length - 1;
    const to = {
      ArrowLeft: () => line.cells[Math.max(1, cell.cellIndex - 1)], ArrowRight: () => line.cells[Math.min(last, cell.cellIndex + 1)],
      ArrowUp: () => line.previousElementSibling?.cells[cell.cellIndex], ArrowDown: () => line.nextElementSibling?.cells[cell.cellIndex],
      Home: () => line.cells[1], End: () => line.cells[last],
    }[event.key];
    if (!to) return;
    event.preventDefault();
    to()?.focus();
  });
  fill();
})();
