// Run inside a page: looks for what a reader would call broken, and writes it into the document.
(() => {
  const problems = [];
  const say = (kind, element, detail) => {
    const where = element.closest("section");
    const name = element.tagName.toLowerCase() + (element.getAttribute("class") ? "." + element.getAttribute("class") : "");
    problems.push(`${kind}: ${name} in ${where ? where.id : "page"}: ${detail}`);
  };
  document.querySelectorAll("details").forEach((details) => { details.open = true; });

  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) say("wide", root, `${root.scrollWidth} > ${root.clientWidth}`);

  // Boxes whose content sticks out, or that stick out of the page, unless they scroll.
  for (const element of document.body.querySelectorAll("*")) {
    if (element.closest("svg") || element.closest(".unseen")) continue;
    const style = getComputedStyle(element);
    if (style.display === "none" || style.display === "inline" || style.display === "contents") continue;
    if (style.overflowX !== "visible") continue;
    if (element.scrollWidth > element.clientWidth + 1 && element.clientWidth > 0) {
      say("overflow", element, `${element.scrollWidth} > ${element.clientWidth}`);
    }
    const box = element.getBoundingClientRect();
    if (!element.closest(".scroll, pre") && (box.right > root.clientWidth + 1 || box.left < -1)) {
      say("outside", element, `${box.left} to ${box.right}`);
    }
  }

  // On a desk a reader sees the whole ranking; on a phone it scrolls.
  for (const table of document.querySelectorAll(".scroll > .ranking")) {
    const box = table.parentElement;
    if (root.clientWidth >= 1200 && box.scrollWidth > box.clientWidth + 1) {
      say("hidden", table, `${box.scrollWidth} > ${box.clientWidth}`);
    }
  }

  // Drawings: not empty, every word inside, and no word on another.
  const inside = (a, b) => a.left >= b.left - 2 && a.right <= b.right + 2 && a.top >= b.top - 2 && a.bottom <= b.bottom + 2;
  const overlap = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 &&
    Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 2.5;
  for (const svg of document.querySelectorAll("svg.chart, svg.spark")) {
    const box = svg.getBoundingClientRect();
    if (box.width < 2 || box.height < 2) say("empty", svg, "no size");
    if (!svg.querySelector("path, rect, circle, text")) say("empty", svg, "nothing drawn");
    if (svg.matches(".chart") && !svg.querySelector(".line, .bar, .dot, .cloud, .swarm, .right")) say("empty", svg, "axes only");
    const cell = svg.parentElement.getBoundingClientRect();
    if (!svg.matches(".natural") && (box.right > cell.right + 1)) say("outside", svg, `${box.right} > ${cell.right}`);
    const words = [...svg.querySelectorAll("text")].map((text) => [text, text.getBoundingClientRect()]);
    words.forEach(([text, a], place) => {
      if (!inside(a, box)) say("clipped", svg, text.textContent);
      if (a.width < 1) say("empty", svg, "a label without width");
      for (const [other, b] of words.slice(place + 1)) {
        if (overlap(a, b)) say("overlap", svg, `${text.textContent} | ${other.textContent}`);
      }
    });
  }
  for (const table of document.querySelectorAll("table")) {
    if (!table.querySelector("tbody tr")) say("empty", table, "no rows");
  }
  for (const section of document.querySelectorAll("section")) {
    if (!section.querySelector("table, svg, pre, li, p, dl")) say("empty", section, section.id);
  }
  for (const link of document.querySelectorAll("nav a")) {
    if (!document.querySelector(link.getAttribute("href"))) say("broken", link, link.getAttribute("href"));
  }

  // Words that can be read: WCAG's contrast of colour and what is behind it.
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
    if (ratio < 4.5) say("contrast", element, `${pair}: ${ratio.toFixed(2)}`);
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
