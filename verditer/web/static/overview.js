// The overview: charts of the last minutes, from the counters of /metrics, and what each account holds.

import { get, watch } from "./api.js";
import { bytes, copy, guarded, h, svg } from "./dom.js";

const SECONDS = 120;
const SHORTEST = 30; // seconds on the axis of a chart that has just begun
const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5];
const WIDTH = 300;
const HEIGHT = 100;

export async function overviewPage({ main, server, onleave }) {
  const points = [];
  let last = null;
  const charts = [
    chart("Requests per second", [["requests", "s1"]], rate, (point) => point.requests),
    chart(
      "Median latency, and percentiles",
      [
        ["p50", "s1"],
        ["p95", "s2"],
        ["p99", "s3"],
      ],
      (value) => `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`,
      (point) => point.p50,
    ),
    chart(
      "Errors per second, by status",
      [
        ["409 and 412", "s3"],
        ["other 4xx", "s2"],
        ["5xx", "s1"],
      ],
      rate,
      (point) => point["409 and 412"] + point["other 4xx"] + point["5xx"],
    ),
    chart(
      "Bytes per second",
      [
        ["in", "s1"],
        ["out", "s4"],
      ],
      (value) => bytes(value),
      (point) => point.in + point.out,
    ),
  ];
  const accounts = h("div", { class: "cards" });
  const codes = h("div", { class: "legend", "aria-label": "Errors since the start" });
  charts[2].element.append(codes);
  main.append(
    h("div", { class: "bar" }, h("h1", {}, "Overview"), h("span", { class: "dim" }, describe(server))),
    h(
      "div",
      { class: "cards" },
      charts.map((each) => each.element),
    ),
    accounts,
  );
  onleave(
    watch(
      { topics: "metrics" },
      {
        metrics: (totals) => {
          if (last) {
            points.push(rates(last, totals));
            if (points.length > SECONDS) points.shift();
            charts.forEach((each) => each.draw(points));
          }
          last = totals;
          codes.replaceChildren(...errorCodes(totals.statuses));
        },
      },
    ),
  );
  const refresh = async () =>
    accounts.replaceChildren(...(await Promise.all(server.accounts.map((account) => accountCard(account, server)))));
  await refresh();
  const timer = setInterval(() => {
    if (!document.hidden) refresh().catch(() => {});
  }, 5000);
  onleave(() => clearInterval(timer));
}

const rate = (value) => value.toFixed(value < 10 ? 1 : 0);
const STORES = { memory: "data in memory", folder: "data in a folder", postgresql: "records in PostgreSQL" };
const describe = (server) =>
  `${STORES[server.store]} · ${server.workers} ${server.workers === 1 ? "process" : "processes"}${server.testControl ? " · test control" : ""}`;

function rates(before, now) {
  const seconds = Math.max((Date.parse(now.time) - Date.parse(before.time)) / 1000, 0.5);
  const sum = (counts) => Object.values(counts).reduce((one, other) => one + other, 0);
  const status = (test) =>
    Object.entries(now.statuses)
      .filter(([code]) => test(code))
      .reduce((total, [code, count]) => total + count - (before.statuses[code] ?? 0), 0) / seconds;
  const counts = now.durations.slice(0, -1).map((count, number) => count - before.durations[number]);
  return {
    requests: Math.max((sum(now.requests) - sum(before.requests)) / seconds, 0),
    p50: percentile(counts, 0.5),
    p95: percentile(counts, 0.95),
    p99: percentile(counts, 0.99),
    "other 4xx": status((code) => code[0] === "4" && !["409", "412"].includes(code)),
    "409 and 412": status((code) => ["409", "412"].includes(code)),
    "5xx": status((code) => code[0] === "5"),
    in: (now.received - before.received) / seconds,
    out: (now.sent - before.sent) / seconds,
  };
}

// How often each status was answered since the server started.
function errorCodes(statuses) {
  const errors = Object.entries(statuses).filter(([code]) => code >= "400" && code <= "599");
  const mark = ([code, count]) =>
    h(
      "span",
      {},
      h("span", { class: `mark ${code[0] === "5" || ["409", "412"].includes(code) ? "bad" : "warn"}` }, code),
      ` ${count.toLocaleString("en")}`,
    );
  return errors.length ? ["since the start:", ...errors.map(mark)] : ["no error since the start"];
}

// In milliseconds, interpolated within the bucket; null when there were no requests.
function percentile(counts, part) {
  const total = counts.reduce((one, other) => one + other, 0);
  if (!total) return null;
  let seen = 0;
  for (const [number, count] of counts.entries()) {
    if (seen + count >= part * total && count) {
      const low = number ? BUCKETS[number - 1] : 0;
      const high = BUCKETS[number] ?? BUCKETS[BUCKETS.length - 1];
      return 1000 * (low + (high - low) * ((part * total - seen) / count));
    }
    seen += count;
  }
  return null;
}

// `total(point)` is the number in large letters.
function chart(title, series, show, total) {
  const big = h("span", { class: "big" }, "–");
  const paths = series.map(([, style]) => svg("path", { class: style }));
  const area = svg("path", { class: `area ${series[0][1]}` });
  const drawing = svg(
    "svg",
    { class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT + 6}`, preserveAspectRatio: "none", role: "img", "aria-label": title },
    svg("line", { class: "grid", x1: 0, x2: WIDTH, y1: HEIGHT, y2: HEIGHT }),
    svg("line", { class: "grid", x1: 0, x2: WIDTH, y1: 14, y2: 14 }),
    area,
    ...paths,
  );
  const limit = h("span", { class: "dim" });
  const values = series.map(() => h("span", {}));
  const legend = h(
    "div",
    { class: "legend" },
    series.length > 1 && series.map(([name, style], number) => h("span", {}, h("i", { class: style }), `${name} `, values[number])),
    h("span", { class: "grow" }),
    limit,
  );
  function draw(points) {
    const highest = Math.max(...points.flatMap((point) => series.map(([name]) => point[name] ?? 0)), 0);
    const scale = highest || 1;
    const shown = Math.max(points.length, SHORTEST);
    series.forEach(([name], number) => {
      const line = points.map((point, index) =>
        point[name] === null
          ? null
          : `${(WIDTH * (index + shown - points.length)) / (shown - 1)},${HEIGHT - ((HEIGHT - 14) * point[name]) / scale}`,
      );
      paths[number].setAttribute(
        "d",
        line
          .map((point, index) =>
            point === null
              ? ""
              : `${index && line[index - 1] !== null ? "L" : "M"}${point}${index && line[index - 1] !== null ? "" : " h0.1"}`,
          )
          .join(" "),
      );
      const value = points[points.length - 1][name];
      values[number].textContent = value === null ? "–" : show(value);
    });
    const lines = paths[0].getAttribute("d");
    area.setAttribute(
      "d",
      series.length === 1 && points.length > 1 ? `${lines} V${HEIGHT} H${(WIDTH * (shown - points.length)) / (shown - 1)} Z` : "",
    );
    const now = total(points[points.length - 1]);
    big.textContent = now === null ? "–" : show(now);
    limit.textContent = `highest ${show(highest)} in ${shown} s`;
  }
  return { element: h("div", { class: "card" }, h("h2", {}, title), big, drawing, legend), draw };
}

async function accountCard(account, server) {
  const amounts = await get("amounts", { account });
  const count = (number) => `${number.toLocaleString("en")}${amounts.at_least && number >= 10000 ? " or more" : ""}`;
  const tile = (service, title, number, inside) =>
    service in server.endpoints &&
    h("a", { href: `#/${encodeURIComponent(account)}/${service}` }, title, h("strong", {}, count(number)), h("span", {}, inside));
  return h(
    "div",
    { class: "card" },
    h(
      "div",
      { class: "head" },
      h("h1", {}, account),
      h(
        "button",
        { type: "button", onclick: guarded(async () => copy((await get("connection-string", { account })).connectionString)) },
        "Copy connection string",
      ),
    ),
    h(
      "div",
      { class: "tiles" },
      tile("blob", "Containers", amounts.containers, `${count(amounts.blobs)} blobs, ${bytes(amounts.blob_bytes)}`),
      tile("queue", "Queues", amounts.queues, `${count(amounts.messages)} messages`),
      tile("table", "Tables", amounts.tables, `${count(amounts.entities)} entities`),
      tile("file", "Shares", amounts.shares, bytes(amounts.share_bytes)),
    ),
  );
}
