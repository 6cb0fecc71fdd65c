// Runs inside a page: finds layout problems and writes them into the document.
(() => {
  const problems = [];
  const report = (kind, element, detail) => {
    const where = element.closest("section");
    const name = element.tagName.toLowerCase() + (element.getAttribute("class") ? "." + element.getAttribute("class") : "");
    problems.push(`${kind}: ${name} in ${where ? where.id : "page"}: ${detail}`);
  };
  document.querySelectorAll("details").forEach((details) => { details.open = true; });

  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) report("wide", root, `${root.scrollWidth} > ${root.clientWidth}`);

  // Boxes that overflow or extend beyond the page, except for scrollable ones.
  for (const element of document.body.querySelectorAll("*")) {
    if (element.closest("svg") || element.closest(".unseen")) continue;
    const style = getComputedStyle(element);
    if (style.display === "none" || style.display === "inline" || style.display === "contents") continue;
    if (style.overflowX !== "visible") continue;
    if (element.scrollWidth > element.clientWidth + 1 && element.clientWidth > 0) {
      report("overflow", element, `${element.scrollWidth} > ${element.clientWidth}`);
    }
    const box = element.getBoundingClientRect();
    if (!element.closest(".scroll, pre") && (box.right > root.clientWidth + 1 || box.left < -1)) {
      report("outside", element, `${box.left} to ${box.right}`);
    }
  }

  // A desktop shows the whole ranking; on a phone it may scroll.
  for (const table of document.querySelectorAll(".scroll > .ranking")) {
    const box = table.parentElement;
    if (root.clientWidth >= 1200 && box.scrollWidth > box.clientWidth + 1) {
      report("hidden", table, `${box.scrollWidth} > ${box.clientWidth}`);
    }
  }

  // Charts are not empty, and their labels are inside and do not overlap.
  const inside = (a, b) => a.left >= b.left - 2 && a.right <= b.right + 2 && a.top >= b.top - 2 && a.bottom <= b.bottom + 2;
  const overlap = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 &&
    Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 2.5;
  for (const svg of document.querySelectorAll("svg.chart, svg.spark")) {
    const box = svg.getBoundingClientRect();
    if (box.width < 2 || box.height < 2) report("empty", svg, "no size");
    if (!svg.querySelector("path, rect, circle, text")) report("empty", svg, "nothing drawn");
    if (svg.matches(".chart") && !svg.querySelector(".line, .bar, .dot, .cloud, .swarm, .right")) report("empty", svg, "axes only");
    const cell = svg.parentElement.getBoundingClientRect();
    if (!svg.matches(".natural") && (box.right > cell.right + 1)) report("outside", svg, `${box.right} > ${cell.right}`);
    const words = [...svg.querySelectorAll("text")].map((text) => [text, text.getBoundingClientRect()]);
    words.forEach(([text, a], index) => {
      if (!inside(a, box)) report("clipped", svg, text.textContent);
      if (a.width < 1) report("empty", svg, "a label without width");
      for (const [other, b] of words.slice(index + 1)) {
        if (overlap(a, b)) report("overlap", svg, `${text.textContent} | ${other.textContent}`);
      }
    });
  }
  for (const table of document.querySelectorAll("table")) {
    if (!table.querySelector("tbody tr")) report("empty", table, "no rows");
  }
  for (const section of document.querySelectorAll("section")) {
    if (!section.querySelector("table, svg, pre, li, p, dl")) report("empty", section, section.id);
  }
  for (const link of document.querySelectorAll("nav a")) {
    if (!document.querySelector(link.getAttribute("href"))) report("broken", link, link.getAttribute("href"));
  }

  // WCAG contrast of text and background.
  const parse = (colour) => colour.match(/[\d.]+/g).map(Number);
  const light = (colour) => {
    const [r, g, b] = parse(colour).slice(0, 3).map((v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if ((parse(colour)[3] ?? 1) > 0.99) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const pairs = new Map();
  for (const element of document.body.querySelectorAll("h1, h2, h3, p, th, td, li, small, figcaption, summary, .badge, .model, a, text.tick, text.name, text.axis-label")) {
    if (element.closest(".tree")) continue;
    const style = getComputedStyle(element);
    const front = element.tagName === "text" ? style.fill : style.color;
    pairs.set(`${front} on ${behind(element)}`, element);
  }
  for (const [pair, element] of pairs) {
    const [a, b] = pair.split(" on ").map(light);
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) report("contrast", element, `${pair}: ${ratio.toFixed(2)}`);
  }
  const result = document.createElement("script");
  result.type = "application/json";
  result.id = "measured";
  result.textContent = JSON.stringify({
    problems, width: root.clientWidth, paper: light(behind(document.body)),
    charts: document.querySelectorAll("svg.chart").length,
  }).replaceAll("<", "\\u003c");
  document.body.append(result);
})();
