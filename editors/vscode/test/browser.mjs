// The extension in a real VS Code.  Opens `mlp.dp`, and looks at what a person would see: colours, a squiggle with its
// message, types between the lines, a hover, completions.  Takes a picture of it.
//
//   node test/browser.mjs PICTURE.png          what it wants: editor.mjs

import assert from "node:assert/strict";
import { resolve } from "node:path";
import { inEditor } from "./editor.mjs";

const picture = resolve(process.argv[2] ?? "vscode.png");

await inEditor("mlp.dp", { width: 1040, height: 470 }, picture, async (page) => {
  await page.locator(".squiggly-error").first().waitFor({ timeout: 120_000 });
  console.log("a squiggle");

  const kinds = await page.$$eval(".view-line span span", (spans) => new Set(spans.map((s) => getComputedStyle(s).color)).size);
  assert.ok(kinds >= 6, `only ${kinds} colours`);
  console.log(`${kinds} colours`);

  await page.locator(".view-line", { hasText: /model:\s\(10,\s12\)\slayer/ }).first().waitFor({ timeout: 60_000 });
  console.log("types between the lines");

  const call = page.locator(".view-line", { hasText: /let\sloss/ }).locator("span", { hasText: /^apply$/ });
  await call.last().hover();
  const hover = page.locator(".monaco-hover:visible", { hasText: /let\sapply/ });
  await hover.waitFor({ timeout: 60_000 });
  const said = await hover.innerText();
  assert.match(said, /let\sapply\s:\s\(n,\sm\)\slayer\s->\sfloat\[n\]\s->\sfloat\[m\]/);
  assert.match(said, /One layer/);
  console.log(`a hover: ${said.split("\n")[0]}`);
  await page.waitForTimeout(500);
  await page.screenshot({ path: picture });

  await page.locator(".squiggly-error").first().waitFor();
  await page.keyboard.press("Escape");
  await page.locator(".view-line", { hasText: /do\sprint/ }).click();
  await page.keyboard.press("Control+End");
  await page.keyboard.type("\nlet total = sof", { delay: 80 });
  const offered = page.locator(".suggest-widget .monaco-list-row", { hasText: "softmax" });
  await offered.first().waitFor({ timeout: 60_000 });
  console.log(`completion: ${(await offered.first().innerText()).replaceAll("\n", "  ")}`);
});
