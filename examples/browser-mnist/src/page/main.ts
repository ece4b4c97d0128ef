import {
  type Command,
  type CompressionName,
  compressionNames,
  modelNames,
  type ModelName,
  type Report,
  type Settings,
} from "../messages.ts";
import { batchSizes, rankCounts, readAddress } from "./address.ts";
import { DigitGrid } from "./digit-grid.ts";
import { DrawPad } from "./draw-pad.ts";
import { findElement } from "./find-element.ts";
import { ProgressView } from "./progress-view.ts";

const modelTitles: Readonly<Record<ModelName, string>> = { cnn: "convolutional", mlp: "dense" };
const compressionTitles: Readonly<Record<CompressionName, string>> = { none: "none", "top-k": "largest 1 %" };

/** Saves bytes as a browser download. */
const saveFile = (bytes: Uint8Array<ArrayBuffer>, name: string): void => {
  const url = URL.createObjectURL(new Blob([bytes], { type: "application/octet-stream" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  // The URL is revoked in the next task, when the download has started.
  setTimeout(() => URL.revokeObjectURL(url));
};

const toggle = findElement("toggle", HTMLButtonElement);
const reset = findElement("reset", HTMLButtonElement);
const download = findElement("download", HTMLButtonElement);
const model = findElement("model", HTMLSelectElement);
const batch = findElement("batch", HTMLSelectElement);
const ranks = findElement("ranks", HTMLSelectElement);
const compression = findElement("compression", HTMLSelectElement);
/** Form controls for the settings of a new training run. */
const choices = [model, batch, ranks, compression];
const controls = [toggle, reset, download, ...choices];
const status = findElement("status", HTMLElement);
const notice = findElement("notice", HTMLElement);

const start = (): void => {
  const address = readAddress(location.search);
  for (const name of modelNames) model.add(new Option(modelTitles[name], name));
  for (const size of batchSizes) batch.add(new Option(String(size)));
  for (const count of rankCounts) ranks.add(new Option(String(count)));
  for (const name of compressionNames) compression.add(new Option(compressionTitles[name], name));
  model.value = address.settings.model;
  batch.value = String(address.settings.batchSize);
  ranks.value = String(address.settings.ranks);
  compression.value = address.settings.compression;

  const view = new ProgressView();
  const worker = new Worker(new URL("../worker/worker.ts", import.meta.url), { type: "module" });
  const tell = (command: Command): void => worker.postMessage(command);

  let grid: DigitGrid | undefined;
  let settings: Settings = address.settings;
  let training = false;
  let step = 0;
  let oneRankOnly: string | undefined;
  /** Element that had the focus before the controls were disabled, because disabling removes the focus. */
  let focused: Element | null = null;
  const pad = new DrawPad((pixels) => tell({ type: "read", pixels }));

  const showState = (text: string): void => {
    status.textContent = text;
    toggle.textContent = training ? "Pause" : "Start";
  };
  const enable = (on: boolean): void => {
    if (!on && document.activeElement !== document.body) focused = document.activeElement;
    for (const control of controls) control.disabled = !on;
    ranks.disabled ||= oneRankOnly !== undefined;
    compression.disabled ||= ranks.value === "1";
    if (on && document.activeElement === document.body && focused instanceof HTMLElement) focused.focus();
  };
  const chosen = (): Settings => ({
    ...address.settings,
    model: model.value as ModelName,
    batchSize: Number(batch.value),
    ranks: ranks.value === "2" ? 2 : 1,
    compression: compression.value as CompressionName,
  });
  const begin = (): void => {
    training = false;
    step = 0;
    settings = chosen();
    reset.classList.remove("primary");
    pad.rest();
    enable(false);
    showState("Preparing the model…");
    tell({ type: "reset", settings });
  };
  /**
   * Applies changed settings: immediately if training has not started, otherwise only after Reset, so that a training
   * run in progress is not lost.
   */
  const choose = (): void => {
    if (step === 0 && !training) return begin();
    const differ = JSON.stringify(chosen()) !== JSON.stringify(settings);
    reset.classList.toggle("primary", differ);
    compression.disabled = ranks.value === "1";
    showState(
      differ ? "Press Reset to train with these settings" : training ? "Training" : `Paused after ${step} steps`,
    );
  };

  const receive = (report: Report): void => {
    switch (report.type) {
      case "opened": {
        findElement("backend", HTMLElement).textContent = report.backend === "webgpu" ? "WebGPU" : "WebAssembly";
        findElement("backend", HTMLElement).classList.add(report.backend);
        findElement("device", HTMLElement).textContent = report.device;
        notice.hidden = report.notice === undefined;
        notice.textContent = report.notice ?? "";
        findElement("data-note", HTMLElement).textContent =
          `${report.trainCount.toLocaleString("en")} training digits and ${report.testCount.toLocaleString("en")} test digits from MNIST (LeCun, Cortes and Burges).`;
        oneRankOnly = report.oneRankOnly;
        if (oneRankOnly !== undefined) {
          if (ranks.value === "2")
            notice.textContent = [report.notice, `Training uses one rank: ${oneRankOnly}.`].join(" ");
          ranks.value = "1";
          ranks.parentElement!.title = `One rank: ${oneRankOnly}.`;
        }
        grid = new DigitGrid(findElement("digits", HTMLOListElement), report.shown);
        return begin();
      }
      case "reset":
        return view.clear(report.parameterCount);
      case "steps":
        step = report.step;
        return view.showSteps(report, settings.batchSize);
      case "evaluated": {
        view.showAccuracy(report.step, report.accuracy);
        const right = grid!.show(report.readings);
        findElement("digits-summary", HTMLElement).textContent =
          `${right} of ${report.readings.classes.length} read right`;
        return pad.refresh();
      }
      case "read":
        return pad.show(report.probabilities);
      case "standstill":
        enable(true);
        return showState(report.step === 0 ? "Ready" : `Paused after ${report.step} steps`);
      case "saved":
        enable(true);
        showState(training ? "Training" : "Saved");
        return saveFile(report.file, `digits-${settings.model}.safetensors`);
      case "failed":
        worker.terminate();
        return fail(report.message);
    }
  };
  worker.addEventListener("message", ({ data }: MessageEvent<Report>) => receive(data));
  worker.addEventListener("error", ({ message }) => fail(message || "the training worker did not start"));

  toggle.addEventListener("click", () => {
    training = !training;
    if (training) {
      showState("Training");
      tell({ type: "train" });
    } else {
      enable(false);
      showState("Pausing…");
      tell({ type: "pause" });
    }
  });
  download.addEventListener("click", () => {
    enable(false);
    showState("Saving…");
    tell({ type: "save" });
  });
  reset.addEventListener("click", begin);
  for (const choice of choices) choice.addEventListener("change", choose);

  tell({ type: "open", backend: address.backend, digits: new URL("digits/", document.baseURI).href });
};

/** Stops the page permanently, and shows the reason and how to restart. */
const fail = (message: string): void => {
  for (const control of controls) control.disabled = true;
  notice.hidden = false;
  notice.classList.add("failed");
  notice.textContent = `Training stopped: ${message}. Reload the page to start again.`;
  status.textContent = "Stopped";
};

try {
  start();
} catch (error) {
  fail(error instanceof Error ? error.message : String(error));
}
