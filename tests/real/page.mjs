// Opens pages in headless Chromium and says what is wrong with them, as JSON on standard output:
//   node page.mjs CHROMIUM FOLDER PAGE...
// FOLDER gets screenshots (light, dark, narrow, and of several widths with all details open) and a print of every page. Needs puppeteer-core and axe-core beside it.
import { createRequire } from "node:module";
import { basename, join } from "node:path";
import { pathToFileURL } from "node:url";

const require = createRequire(join(process.env.NODE_MODULES_OF ?? process.cwd(), "package.json"));
const puppeteer = require("puppeteer-core");
const axe = require.resolve("axe-core/axe.min.js");

// Widths of a phone, a small phone, half a screen, a screen.
const widths = [400, 320, 800, 1400];
const [chromium, folder, ...pages] = process.argv.slice(2);
const browser = await puppeteer.launch({ executablePath: chromium, args: ["--no-sandbox", "--disable-gpu"] });
const found = {};
for (const file of pages) {
  const url = pathToFileURL(file).href;
  const name = basename(file, ".html");
  const seen = { requests: [], console: [], violations: [], unreached: [], overflowing: [] };
  for (const scheme of ["light", "dark"]) {
    const page = await browser.newPage();
    page.on("request", (request) => request.url() === url || seen.requests.push(request.url()));
    page.on("console", (message) => seen.console.push(message.text()));
    page.on("pageerror", (error) => seen.console.push(String(error)));
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
    await page.setViewport({ width: 1000, height: 800 });
    // What the page itself does comes first: the checker is a script, which its policy would not let in.
    await page.setJavaScriptEnabled(false);
    await page.goto(url, { waitUntil: "load" });
    await page.screenshot({ path: join(folder, `${name}-${scheme}.png`), fullPage: true });
    if (scheme === "light") {
      await page.setViewport({ width: 400, height: 800 });
      await page.screenshot({ path: join(folder, `${name}-narrow.png`), fullPage: true });
      await page.setViewport({ width: 1000, height: 800 });
      await page.pdf({ path: join(folder, `${name}.pdf`) });
      seen.heard = seen.console.length;
    }
    await page.close();

    const checked = await browser.newPage();
    await checked.setBypassCSP(true);
    await checked.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
    await checked.setViewport({ width: 1000, height: 800 });
    await checked.goto(url, { waitUntil: "load" });
    await checked.evaluate(() => document.querySelectorAll("details").forEach((details) => (details.open = true)));
    await checked.addScriptTag({ path: axe });
    const { violations } = await checked.evaluate(() => globalThis.axe.run(document));
    for (const violation of violations) {
      seen.violations.push(`${scheme}: ${violation.id}: ${violation.nodes[0]?.html} (${violation.nodes.length})`);
    }
    for (const width of widths) {
      await checked.setViewport({ width, height: 800 });
      await checked.screenshot({ path: join(folder, `${name}-${scheme}-${width}.png`), fullPage: true });
      const wide = await checked.evaluate(() =>
        [document.documentElement, ...document.querySelectorAll("section")]
          .filter((element) => element.scrollWidth !== element.clientWidth)
          .map((element) => `${element.tagName} ${element.scrollWidth} of ${element.clientWidth}`),
      );
      seen.overflowing.push(...wide.map((element) => `${scheme} at ${width}: ${element}`));
    }
    await checked.setViewport({ width: widths[0], height: 800 });
    for (const violation of (await checked.evaluate(() => globalThis.axe.run(document))).violations) {
      seen.violations.push(`${scheme}, narrow: ${violation.id}: ${violation.nodes[0]?.html} (${violation.nodes.length})`);
    }
    await checked.setViewport({ width: 1000, height: 800 });
    if (scheme === "light") {
      const wanted = await checked.evaluate(() => {
        const all = [...document.querySelectorAll("summary, a[href], [tabindex='0']")];
        all.forEach((element, place) => element.setAttribute("data-place", place));
        return all.length;
      });
      const reached = new Set();
      for (let step = 0; step <= wanted; step += 1) {
        await checked.keyboard.press("Tab");
        reached.add(await checked.evaluate(() => document.activeElement?.getAttribute("data-place")));
      }
      for (let place = 0; place < wanted; place += 1) {
        if (!reached.has(String(place))) seen.unreached.push(place);
      }
      seen.headings = await checked.evaluate(() =>
        [...document.querySelectorAll("h1, h2, h3, h4, h5, h6")].map((heading) => Number(heading.tagName[1])),
      );
      seen.text = await checked.evaluate(() => document.body.innerText);
    }
    await checked.close();
  }
  found[name] = seen;
}
await browser.close();
console.log(JSON.stringify(found));
