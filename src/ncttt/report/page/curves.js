// Data into options, continued: what has points or curves on two axes of numbers.

const MOST_LABELS = 6;  // that find room at the ends of curves; the legend has all

// Several curves over one axis, their names at their ends where there is room.
function curves(points, lines, look, xAxis, shown, more = {}) {
  const labelled = !look.narrow && lines.length <= MOST_LABELS;
  return {
    height: look.narrow ? 300 : 400,
    grid: { left: 44, right: labelled ? 170 : 16, top: 30, bottom: 44 },
    xAxis: { nameLocation: "middle", nameGap: 30, ...valueAxis(look, { splitLine: { show: false } }), ...xAxis,
      nameTextStyle: axisText(look) },
    yAxis: valueAxis(look, { scale: true, name: "accuracy, %" }),
    tooltip: {
      trigger: "axis",
      formatter: (found) => tip(shown(found[0]), found.filter((one) => known(one.value[1]))
        .sort((a, b) => b.value[1] - a.value[1]).map((one) => [one.seriesName, percent(one.value[1]), one.color])),
    },
    series: lines.map((line, place) => ({
      type: "line", name: line.name, data: points(line), color: look.of(line), symbol: symbolOf(line),
      symbolSize: 6, showSymbol: points(line).length <= 20, lineStyle: { type: dashOf(line), width: 2 },
      connectNulls: true, emphasis: { focus: "series" }, blur: { lineStyle: { opacity: 0.15 } },
      endLabel: { show: labelled, formatter: "{a}", color: "inherit", fontSize: 12, fontFamily: look.font },
      labelLayout: { moveOverlap: "shiftY" }, markLine: place ? undefined : more.markLine,
    })),
  };
}

function severity(setup, lines, look, choices, data) {
  const { values, lines: own } = data.severities[setup.severity];
  const shown = lines.filter((line) => own[line.name]);
  const points = (line) => own[line.name].map((value, place) => [String(values[place]), value]);
  const axis = { type: "category", data: values.map(String), name: "severity", boundaryGap: false };
  return curves(points, shown, look, axis, (one) => `Severity ${one.name}`);
}

function stream(setup, lines, look) {
  const shown = lines.filter((line) => line.stream.length);
  const last = Math.max(...shown.flatMap((line) => line.stream.map(([end]) => end)));
  const starts = setup.parts.map((name, place) => ({ xAxis: 1 + Math.round((place * last) / setup.parts.length), name }));
  const axis = { min: 1, max: last, name: "batch", splitNumber: look.narrow ? 4 : 8, minInterval: 1 };
  return curves((line) => line.stream, shown, look, axis, (one) => `Batch ${one.value[0]}`, {
    markLine: starts.length ? {
      silent: true, symbol: "none", data: starts, lineStyle: { color: look.rule, type: "solid" },
      label: { formatter: "{b}", rotate: 90, position: "insideStartTop", ...axisText(look, 10) },
    } : undefined,
  });
}

function steps(setup, lines, look) {
  const shown = lines.filter((line) => line.curve.length);
  const counts = [...new Set(shown.flatMap((line) => line.curve.map(([count]) => count)))].sort((a, b) => a - b);
  const axis = { type: "category", data: counts.map(String), name: "steps", boundaryGap: false };
  const points = (line) => line.curve.map(([count, value]) => [String(count), value]);
  return curves(points, shown, look, axis, (one) => `After ${one.name} steps`);
}

function cost(setup, lines, look) {
  const timed = lines.filter((line) => known(line.mean) && line.milliseconds);
  const shown = timed.sort((one, other) => one.milliseconds - other.milliseconds);
  const times = shown.map((line) => line.milliseconds);
  return {
    height: look.narrow ? 320 : 420,
    grid: { left: 44, right: 24, top: 30, bottom: 44 },
    xAxis: valueAxis(look, {
      type: "log", name: "milliseconds per image", nameLocation: "middle", nameGap: 30, nameTextStyle: axisText(look),
      min: 10 ** Math.floor(Math.log10(Math.min(...times))), max: 10 ** Math.ceil(Math.log10(Math.max(...times))),
    }),
    yAxis: valueAxis(look, { scale: true, name: "accuracy, %" }),
    tooltip: { trigger: "item", formatter: ({ seriesIndex }) => tipOf(shown[seriesIndex]) },
    series: shown.map((line, place) => ({
      type: "scatter", name: line.name, symbol: symbolOf(line), symbolSize: 13, color: look.of(line),
      data: [[line.milliseconds, line.mean]], itemStyle: { opacity: 1 },
      labelLayout: { hideOverlap: true },
      label: {
        show: true, position: place % 2 ? "bottom" : "top", formatter: "{a}", color: look.ink, fontSize: 12, fontFamily: look.font,
        width: look.narrow ? 90 : 190, overflow: "truncate",
      },
      emphasis: { focus: "series" }, blur: { itemStyle: { opacity: 0.15 }, label: { opacity: 0.15 } },
    })),
  };
}

function drift(setup, lines, look, choices) {
  const line = lines.find((one) => one.name === choices.line) || lines.find((one) => one.drift.length);
  const shade = look.of(line), names = line.drift.map(([name]) => name);
  const bridge = line.drift.flatMap(([, from, to], row) => [[from, row], [to, row], [null, null]]);
  const dots = (name, part, symbol) => ({
    type: "scatter", name, symbol, symbolSize: 10, color: shade, z: 3,
    itemStyle: { opacity: 1 }, data: line.drift.map((one, row) => [one[part], row]),
  });
  return {
    rows: line.drift.length, row: look.narrow ? 27 : 30,
    grid: { left: room(names, look), right: 20, top: 6, bottom: 26 },
    xAxis: valueAxis(look, { scale: true }),
    yAxis: nameAxis(names, look),
    tooltip: {
      trigger: "axis", axisPointer: { type: "shadow", axis: "y", shadowStyle: { color: look.raised, opacity: 0.9 } },
      formatter: ([{ dataIndex, value }]) => driftTip(line, value?.[1] ?? dataIndex, shade),
    },
    series: [
      { type: "line", data: bridge, symbol: "none", silent: true, lineStyle: { color: look.soft, width: 1.5 } },
      dots("before", 1, "emptyCircle"), dots("after", 2, "circle"),
    ],
  };
}

function driftTip(line, row, shade) {
  const [name, before, after, accuracy] = line.drift[row];
  return tip(name, [["before", before.toFixed(3)], ["after", after.toFixed(3), shade], ["accuracy", percent(accuracy)]]);
}

const OPTIONS = { ranking, corruptions, severity, shares, stream, cost, steps, drift };
