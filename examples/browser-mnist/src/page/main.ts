import { type Command, modelNames, type ModelName, type Report, type Settings } from "../messages.ts";
import { batchSizes, readAddress } from "./address.ts";
import { DigitGrid } from "./digit-grid.ts";
import { findElement } from "./find-element.ts";
import { ProgressView } from "./progress-view.ts";
import { saveFile } from "./save-file.ts";

const modelTitles: Readonly<Record<ModelName, string>> = { cnn: "convolutional", mlp: "dense" };

const toggle = findElement("toggle", HTMLButtonElement);
const reset = findElement("reset", HTMLButtonElement);
const download = findElement("download", HTMLButtonElement);
const model = findElement("model", HTMLSelectElement);
const batch = findElement("batch", HTMLSelectElement);
const status = findElement("status", HTMLElement);
const notice = findElement("notice", HTMLElement);

const start = (): void => {
  const address = readAddress(location.search);
  for (const name of modelNames) model.add(new Option(modelTitles[name], name));
  for (const size of batchSizes) batch.add(new Option(String(size)));
  model.value = address.settings.model;
  batch.value = String(address.settings.batchSize);

  const view = new ProgressView();
  const worker = new Worker(new URL("../worker/worker.ts", import.meta.url), { type: "module" });
  const tell = (command: Command): void => worker.postMessage(command);

  let grid: DigitGrid | undefined;
  let settings: Settings = address.settings;
  let training = false;

  const showState = (text: string): void => {
    status.textContent = text;
    toggle.textContent = training ? "Pause" : "Start";
  };
  const enable = (on: boolean): void => {
    for (const control of [toggle, reset, download, model, batch]) control.disabled = !on;
  };
  const begin = (): void => {
    training = false;
    settings = { ...address.settings, model: model.value as ModelName, batchSize: Number(batch.value) };
    enable(false);
    showState("Preparing the model…");
    tell({ type: "reset", settings });
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
          `${report.trainCount.toLocaleString("en")} digits to learn from and ${report.testCount.toLocaleString("en")} to test with, from MNIST (LeCun, Cortes and Burges).`;
        grid = new DigitGrid(findElement("digits", HTMLOListElement), report.shown);
        return begin();
      }
      case "reset":
        return view.clear(report.parameterCount);
      case "steps":
        return view.showSteps(report, settings.batchSize);
      case "evaluated": {
        view.showAccuracy(report.step, report.accuracy);
        const right = grid!.show(report.readings);
        findElement("digits-summary", HTMLElement).textContent = `${right} of ${report.readings.classes.length} read right`;
        return;
      }
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
  model.addEventListener("change", begin);
  batch.addEventListener("change", begin);

  tell({ type: "open", backend: address.backend, digits: new URL("digits/", document.baseURI).href });
};

/** Nothing goes on from here; the page says why and how to begin again. */
const fail = (message: string): void => {
  for (const control of [toggle, reset, download, model, batch]) control.disabled = true;
  notice.hidden = false;
  notice.classList.add("failed");
  notice.textContent = `Training stopped: ${message}. Reload the page to begin again.`;
  status.textContent = "Stopped";
};

try {
  start();
} catch (error) {
  fail(error instanceof Error ? error.message : String(error));
}
