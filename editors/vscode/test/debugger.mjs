// The debugger in a real VS Code.  Opens `nan.dp`, stops where the reverse sweep makes the first number that is not finite,
// looks for derivatives beside the code and in the list of variables, and goes a step back.  Takes a picture of it.
//
//   node test/debugger.mjs PICTURE.png         what it wants: editor.mjs

import assert from "node:assert/strict";
import { resolve } from "node:path";
import { inEditor } from "./editor.mjs";

const picture = resolve(process.argv[2] ?? "debugger.png");
const SLOW = { timeout: 120_000 };

await inEditor("nan.dp", { width: 1280, height: 500 }, picture, async (page) => {
  await page.locator(".view-line", { hasText: /sum\s\(v\s\*\sv\)/ }).first().click();
  await command(page, "Debug: Toggle Breakpoint");
  await page.locator(".codicon-debug-breakpoint, .codicon-debug-breakpoint-unverified").first().waitFor(SLOW);
  console.log("a breakpoint");

  await page.keyboard.press("F5");
  await page.locator(".debug-top-stack-frame-line").first().waitFor(SLOW);
  console.log("stopped in the function");
  const inline = page.locator(".view-line", { hasText: /v\s=\s\[0(\.0)?,\s0(\.0)?,\s0(\.0)?\]/ });
  await inline.first().waitFor(SLOW);
  console.log("a value beside the code");

  await page.locator(".debug-top-stack-frame-line").first().waitFor(SLOW);
  await page.locator(".codicon-debug-step-over").first().click();
  const before = page.locator(".debug-call-stack .monaco-list-row", { hasText: /cost/ });
  await before.first().waitFor(SLOW);
  await page.locator(".codicon-debug-step-back").first().click();
  await inline.first().waitFor(SLOW);
  console.log("a step over, and a step back");

  const adjoints = page.locator(".debug-pane .monaco-list-row", { hasText: /NaN and infinity/ });
  await adjoints.first().waitFor(SLOW);
  await adjoints.first().locator(".monaco-checkbox, input").first().click();
  await page.locator(".codicon-debug-continue").first().click();
  await page.locator(".zone-widget-container, .exception-widget").first().waitFor(SLOW);
  const said = await page.locator(".exception-widget").first().innerText();
  assert.match(said, /reverse sweep/);
  console.log(`stopped in the sweep: ${said.split("\n")[0]}`);
  await page.keyboard.press("Control+j"); // no panel
  await page.mouse.move(800, 420);
  await page.waitForTimeout(2500);
  await page.screenshot({ path: picture });
});

/** Runs a command by its name. */
async function command(page, name) {
  await page.keyboard.press("F1");
  await page.waitForTimeout(400);
  await page.keyboard.type(name, { delay: 15 });
  await page.waitForTimeout(800);
  await page.keyboard.press("Enter");
  await page.waitForTimeout(800);
}
