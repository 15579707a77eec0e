// Data into options of ECharts, one function for each chart: (setup, lines, look, choices) -> options.
const SYMBOLS = ["circle", "emptyCircle", "rect", "triangle", "diamond", "emptyRect", "emptyTriangle", "emptyDiamond"];
const DASHES = ["solid", [7, 4], [2, 3], [10, 3, 2, 3]];
const MOST_BARS = { narrow: 10, wide: 15 };  // of the first chart; the table has all

const percent = (value) => `${value.toFixed(1)} %`;
const signed = (value) => `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(1)}`;
const known = (value) => value !== null && value !== undefined;
const byMean = (one, other) => other.mean - one.mean;
const symbolOf = (line) => SYMBOLS[line.form % SYMBOLS.length];
const dashOf = (line) => DASHES[line.form % DASHES.length];
const shortened = (name, most) => (name.length > most ? `${name.slice(0, most - 1)}…` : name);

// Text nodes only: whatever rows say stays text.
function tip(title, pairs) {
  const box = document.createElement("div");
  const head = box.appendChild(document.createElement("strong"));
  head.textContent = title;
  for (const [name, value, shade] of pairs) {
    const row = box.appendChild(document.createElement("div"));
    row.className = "tip";
    const mark = row.appendChild(document.createElement("span"));
    mark.className = "swatch";
    mark.style.background = shade || "transparent";
    row.appendChild(document.createElement("span")).textContent = name;
    row.appendChild(document.createElement("b")).textContent = value;
  }
  return box;
}

// Pixels for the names of rows: as many as the longest needs, up to a limit.
const room = (names, look) => Math.min(look.narrow ? 124 : 200, 16 + 7.4 * Math.max(...names.map((name) => name.length)));

const axisText = (look, size = 12) => ({ color: look.soft, fontSize: size, fontFamily: look.font });

function valueAxis(look, more) {
  return {
    type: "value", axisLine: { show: false }, axisTick: { show: false }, splitNumber: 4,
    splitLine: { lineStyle: { color: look.rule } }, axisLabel: axisText(look),
    nameTextStyle: { ...axisText(look), align: "left" }, ...more,
  };
}

function nameAxis(names, look, more) {
  return {
    type: "category", data: names, inverse: true, axisLine: { show: false }, axisTick: { show: false },
    axisLabel: {
      color: look.ink, fontSize: look.narrow ? 12 : 13, fontFamily: look.font, width: room(names, look) - 12, interval: 0,
      overflow: "break", lineHeight: 13, formatter: (name) => shortened(name, look.narrow ? 30 : 50),
    }, ...more,
  };
}

function ranking(setup, lines, look) {
  const shown = highest(lines.filter((line) => known(line.mean)).sort(byMean), look);
  const source = shown.find((line) => line.source), names = shown.map((line) => line.name);
  return {
    rows: shown.length, row: look.narrow ? 30 : shown.length > 11 ? 29 : 38,
    grid: { left: room(names, look), right: 60, top: source ? 24 : 4, bottom: 4 },
    xAxis: valueAxis(look, { min: 0, max: 100, splitLine: { show: false }, axisLabel: { show: false } }),
    yAxis: nameAxis(names, look),
    tooltip: { trigger: "item", formatter: ({ dataIndex }) => tipOf(shown[dataIndex]) },
    series: [{
      type: "bar", barWidth: "64%",
      data: shown.map((line) => ({
        value: line.mean,
        itemStyle: { color: look.of(line), borderRadius: [0, 3, 3, 0] },
      })),
      label: {
        show: true, position: "right", formatter: ({ value }) => percent(value), color: look.ink, fontSize: 13,
        fontFamily: look.font,
      },
      markLine: source && shown.length > 1 ? {
        silent: true, symbol: "none", data: [{ xAxis: source.mean }], animation: false,
        lineStyle: { color: look.ink, type: [3, 3], width: 1, opacity: 0.7 },
        label: { formatter: "without adaptation", position: "start", ...axisText(look) },
      } : undefined,
    }],
  };
}

// The most accurate ones, and those that all others are measured by.
function highest(ranked, look) {
  const most = look.narrow ? MOST_BARS.narrow : MOST_BARS.wide;
  const kept = (line) => line.source || ["NC-TTT", "PTBN"].includes(line.name);
  const reserved = ranked.slice(most).filter(kept).length;
  return ranked.filter((line, place) => place < most - reserved || (place >= most && kept(line)));
}

function tipOf(line) {
  const pairs = [["accuracy", percent(line.mean)]];
  if (known(line.deviation)) pairs.push(["± over seeds", line.deviation.toFixed(1)]);
  if (known(line.gain)) pairs.push(["gain", `${signed(line.gain)} points`]);
  if (line.share) pairs.push(["by statistics", signed(line.share[1])], ["by steps", signed(line.share[2])]);
  if (known(line.milliseconds)) pairs.push(["time per image", `${line.milliseconds.toFixed(1)} ms`]);
  if (line.model) pairs.push(["model", line.model]);
  return tip(line.name, pairs);
}

function corruptionOrder(setup, lines, sort) {
  const places = setup.corruptions.map((_, place) => place);
  const highest = (place) => Math.max(-1, ...lines.map((line) => line.each[place] ?? -1));
  const source = lines.find((line) => line.source);
  const gain = (place) => highest(place) - (source?.each[place] ?? highest(place));
  if (sort === "given") return places;
  if (sort === "name") return places.sort((a, b) => setup.corruptions[a].localeCompare(setup.corruptions[b], "en"));
  const key = sort === "best" || !source ? highest : gain;
  return places.sort((a, b) => (a === setup.clean) - (b === setup.clean) || key(b) - key(a));
}

function corruptions(setup, lines, look, { sort }) {
  const order = corruptionOrder(setup, lines, sort);
  const values = lines.flatMap((line) => line.each.filter(known));
  const names = order.map((place) => setup.corruptions[place]);
  return {
    rows: order.length, row: look.narrow ? 27 : 30,
    grid: { left: room(names, look), right: 14, top: 6, bottom: 26 },
    xAxis: valueAxis(look, { min: Math.max(0, 20 * Math.floor(Math.min(...values) / 20)), max: 100, interval: 20 }),
    yAxis: nameAxis(names, look, {
      splitLine: { show: true, lineStyle: { color: look.rule } }, boundaryGap: true,
    }),
    tooltip: {
      trigger: "axis", axisPointer: { type: "shadow", axis: "y", shadowStyle: { color: look.raised, opacity: 0.9 } },
      formatter: (found) => tip(found[0].name, found.sort((a, b) => b.value[0] - a.value[0])
        .map((one) => [one.seriesName, percent(one.value[0]), one.color])),
    },
    series: lines.map((line) => ({
      type: "scatter", name: line.name, symbol: symbolOf(line), symbolSize: 11, color: look.of(line),
      itemStyle: { opacity: 0.9 }, emphasis: { focus: "series", scale: 1.3 }, blur: { itemStyle: { opacity: 0.12 } },
      data: order.map((place, row) => [line.each[place], row]).filter(([value]) => known(value)),
    })),
  };
}

function shares(setup, lines, look, { corruption }) {
  const place = setup.corruptions.indexOf(corruption);
  const of = (line) => (place < 0 ? line.share : line.shares[place]);
  const shown = lines.filter(of).sort((a, b) => of(b)[1] + of(b)[2] - of(a)[1] - of(a)[2]);
  const names = shown.map((line) => line.name);
  const bar = (name, part, style) => ({
    type: "bar", name, stack: "gain", barWidth: "58%", emphasis: { disabled: true },
    data: shown.map((line) => ({ value: of(line)[part], itemStyle: style(line) })),
  });
  return {
    rows: shown.length, row: 32,
    grid: { left: room(names, look), right: 96, top: 6, bottom: 26 },
    xAxis: valueAxis(look, { axisLabel: { ...axisText(look), formatter: (value) => (value > 0 ? `+${value}` : value) } }),
    yAxis: nameAxis(names, look),
    tooltip: {
      trigger: "axis", axisPointer: { type: "shadow", shadowStyle: { color: look.raised, opacity: 0.9 } },
      formatter: ([first]) => shareTip(shown[first.dataIndex], of, look),
    },
    series: [
      bar("batch statistics", 1, () => ({ color: look.statistics })),
      bar("steps", 2, (line) => ({ color: look.of(line) })),
      {
        type: "scatter", symbolSize: 0, silent: true, data: shown.map((line, row) => [
          Math.max(0, of(line)[1]) + Math.max(0, of(line)[2]), row]),
        label: {
          show: true, position: "right", fontSize: 13, fontFamily: look.font,
          formatter: ({ dataIndex }) => {
            const [, statistics, own] = of(shown[dataIndex]);
            return `{a|${signed(statistics)}} {b|${signed(own)}}`;
          },
          rich: { a: { color: look.soft }, b: { color: look.ink, fontWeight: 600 } },
        },
      },
    ],
  };
}

function shareTip(line, of, look) {
  const [source, statistics, own] = of(line);
  return tip(line.name, [
    ["without adaptation", percent(source)], ["batch statistics", signed(statistics), look.statistics],
    ["steps", signed(own), look.of(line)], ["adapted", percent(source + statistics + own)],
  ]);
}

