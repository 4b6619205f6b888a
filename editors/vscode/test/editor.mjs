// A real VS Code for the tests: code-server under headless Chromium, with the extension.
//
// Environment: CODE_SERVER, a folder in which code-server and playwright-core are installed (how: README.md); CHROMIUM
// (default /usr/bin/chromium); DPL, the command `dpl` (default: as on the search path).  Wants `npm run package` before.

import { execFileSync, spawn } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { basename, delimiter, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));

const command = process.env.DPL ?? onPath("dpl");
const settings = {
  "workbench.startupEditor": "none",
  "workbench.activityBar.location": "hidden",
  "workbench.statusBar.visible": true,
  "editor.minimap.enabled": false,
  "editor.fontSize": 14,
  "editor.hover.delay": 100,
  "breadcrumbs.enabled": false,
  "debug.inlineValues": "on",
  "debug.toolBarLocation": "docked",
  "window.commandCenter": false,
  "security.workspace.trust.enabled": false,
  "telemetry.telemetryLevel": "off",
  "chat.commandCenter.enabled": false,
};

/** Opens a program in an editor of this size, and hands its page to `work`; a failure leaves a picture. */
export async function inEditor(program, size, picture, work) {
  const installed = resolve(process.env.CODE_SERVER ?? "code-server");
  const { chromium } = createRequire(join(installed, "package.json"))("playwright-core");
  const codeServer = join(installed, "node_modules/code-server/out/node/entry.js");
  const folder = mkdtempSync(join(tmpdir(), "dpl-vscode-"));
  const [project, user, extensions] = ["project", "user", "extensions"].map((name) => join(folder, name));
  const places = ["--user-data-dir", user, "--extensions-dir", extensions, "--config", join(folder, "config.yaml")];
  const name = basename(program);

  mkdirSync(project);
  mkdirSync(join(user, "User"), { recursive: true });
  cpSync(join(here, program), join(project, name));
  mkdirSync(join(user, "Machine"));
  writeFileSync(join(user, "User/settings.json"), JSON.stringify(settings));
  writeFileSync(join(user, "Machine/settings.json"), JSON.stringify({ "dpl.command": [command] }));
  writeFileSync(join(folder, "config.yaml"), "auth: none\n");

  const packed = join(here, "../dpl.vsix");
  execFileSync(process.execPath, [codeServer, ...places, "--install-extension", packed], { stdio: "inherit" });
  const port = await freePort();
  const options = ["--auth", "none", "--disable-workspace-trust", "--disable-telemetry", "--disable-update-check"];
  const server = spawn(process.execPath, [codeServer, ...places, ...options, "--bind-addr", `127.0.0.1:${port}`, project], {
    stdio: "ignore",
  });
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox"],
  });
  try {
    const page = await browser.newPage({ viewport: size });
    await reached(`http://127.0.0.1:${port}/healthz`);
    await page.goto(`http://127.0.0.1:${port}/?folder=${encodeURIComponent(project)}`);
    await page.locator(".monaco-workbench").waitFor({ timeout: 120_000 });
    await page.keyboard.press("Control+b"); // no side bar
    await opened(page, name);
    await work(page);
  } catch (failure) {
    await browser.contexts()[0]?.pages()[0]?.screenshot({ path: `${picture}.failed.png` });
    throw failure;
  } finally {
    await browser.close();
    server.kill();
    rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 500 });
  }
}

/** A port of this machine that nothing listens on. */
function freePort() {
  return new Promise((done) => {
    const probe = createServer().listen(0, "127.0.0.1", () => {
      const { port } = probe.address();
      probe.close(() => done(port));
    });
  });
}

/** Where a command is, as code-server gives the extension a search path of its own. */
function onPath(name) {
  const places = (process.env.PATH ?? "").split(delimiter).map((folder) => join(folder, name));
  return places.find(existsSync) ?? name;
}

/** Waits until an address answers. */
async function reached(url) {
  for (let tries = 0; tries < 120; tries++) {
    try {
      return await fetch(url);
    } catch {
      await new Promise((next) => setTimeout(next, 500));
    }
  }
  throw new Error(`${url} does not answer`);
}

/** Opens a file by its name, as soon as the editor is ready for it. */
async function opened(page, name) {
  for (let tries = 0; tries < 20; tries++) {
    await page.keyboard.press("Control+p");
    await page.waitForTimeout(500);
    await page.keyboard.type(name);
    await page.waitForTimeout(1500);
    await page.keyboard.press("Enter");
    if (await page.locator(".view-line").first().isVisible({ timeout: 3000 }).catch(() => false)) {
      return;
    }
    await page.keyboard.press("Escape");
  }
  throw new Error(`${name} does not open`);
}
