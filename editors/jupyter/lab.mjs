// The kernel in a real Jupyter Lab, under headless Chromium: opens a notebook, runs all its cells, and looks for what a
// person would see.  Takes a picture of it.
//
//   node lab.mjs NOTEBOOK PICTURE.png
//
// Environment: PLAYWRIGHT, a folder in which playwright-core is installed; JUPYTER, the command `jupyter`, with JupyterLab
// and the kernel (dpl jupyter install); CHROMIUM (default /usr/bin/chromium).

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { basename, join, resolve } from "node:path";

const [notebook, picture] = [resolve(process.argv[2]), resolve(process.argv[3] ?? "lab.png")];
const { chromium } = createRequire(join(resolve(process.env.PLAYWRIGHT ?? "."), "package.json"))("playwright-core");
const folder = mkdtempSync(join(tmpdir(), "dpl-lab-"));
cpSync(notebook, join(folder, basename(notebook)));
const port = await new Promise((done) => {
  const probe = createServer().listen(0, "127.0.0.1", () => {
    const { port } = probe.address();
    probe.close(() => done(port));
  });
});
const options = ["--no-browser", "--allow-root", `--port=${port}`, "--ServerApp.token=", "--ServerApp.password=", "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"];
const server = spawn(process.env.JUPYTER ?? "jupyter", ["lab", ...options], { cwd: folder, stdio: "ignore" });
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
const page = await browser.newPage({ viewport: { width: 1000, height: 760 } });
try {
  for (let tries = 0; tries < 240; tries++) {
    const answers = await fetch(`http://127.0.0.1:${port}/api`).then(() => true, () => false);
    if (answers) break;
    await new Promise((next) => setTimeout(next, 500));
  }
  await page.goto(`http://127.0.0.1:${port}/lab/tree/${basename(notebook)}?reset`);
  const cells = page.locator(".jp-CodeCell");
  await cells.first().waitFor({ timeout: 180_000 });
  await page.keyboard.press("Control+b"); // no side bar
  await page.locator(".jp-Notebook").click({ position: { x: 5, y: 5 } }).catch(() => {});
  await page.getByText("DPL", { exact: true }).first().waitFor({ timeout: 120_000 });
  console.log("the kernel of the notebook is DPL");
  await page.getByText(/DPL \| Idle/).first().waitFor({ timeout: 120_000 });
  await page.waitForTimeout(2000);
  await page.getByRole("menuitem", { name: "Run", exact: true }).first().click();
  await page.locator(".lm-Menu-item", { hasText: /^Run All Cells/ }).first().click();
  await page.getByRole("button", { name: "No", exact: true }).click({ timeout: 3000 }).catch(() => {}); // news
  const count = await cells.count();
  await page.waitForFunction((n) => {
    const prompts = [...document.querySelectorAll(".jp-CodeCell .jp-InputPrompt")].map((p) => p.textContent ?? "");
    return prompts.length >= n && prompts.every((p) => /\[\d+\]/.test(p));
  }, count, { timeout: 240_000 });
  assert.equal(await page.locator(".jp-OutputArea-output[data-mime-type='application/vnd.jupyter.stderr']").count(), 0);
  console.log(`${count} cells have run`);
  const pictures = page.locator(".jp-OutputArea-output svg, .jp-OutputArea-output img[src^='data:image/svg']");
  assert.ok((await pictures.count()) > 0, "no picture");
  console.log(`${await pictures.count()} pictures`);
  await pictures.first().scrollIntoViewIfNeeded();
  await page.waitForTimeout(1500);
  await page.screenshot({ path: picture });
} catch (failure) {
  await page.screenshot({ path: `${picture}.failed.png` });
  throw failure;
} finally {
  await browser.close();
  server.kill();
  rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 500 });
}
