import { InvariantError, OperatorError } from "@skein/tensor-core";
import { isUserOperator } from "@skein/tensor-core/backend";
import type { WebGpuDevice } from "./device.ts";

export type BindingKind = "read" | "write" | "uniform";

export interface Pipeline {
  readonly layout: GPUBindGroupLayout;
  /** Resolves with the pipeline when its compilation has finished. */
  readonly ready: Promise<GPUComputePipeline>;
}

/**
 * Cache of pipelines by shader text: nodes with the same shader share a pipeline, which is compiled once,
 * asynchronously.
 */
export class PipelineCache {
  private readonly device: WebGpuDevice;
  private readonly pipelines = new Map<string, Pipeline>();
  private readonly layouts = new Map<
    string,
    { readonly group: GPUBindGroupLayout; readonly pipeline: GPUPipelineLayout }
  >();

  constructor(device: WebGpuDevice) {
    this.device = device;
  }

  get size(): number {
    return this.pipelines.size;
  }

  private layout(kinds: readonly BindingKind[]): {
    readonly group: GPUBindGroupLayout;
    readonly pipeline: GPUPipelineLayout;
  } {
    const key = kinds.join();
    let layout = this.layouts.get(key);
    if (layout === undefined) {
      const types = { read: "read-only-storage", write: "storage", uniform: "uniform" } as const;
      const group = this.device.gpu.createBindGroupLayout({
        entries: kinds.map((kind, binding) => ({ binding, visibility: 4, buffer: { type: types[kind] } })),
      });
      layout = { group, pipeline: this.device.gpu.createPipelineLayout({ bindGroupLayouts: [group] }) };
      this.layouts.set(key, layout);
    }
    return layout;
  }

  /**
   * Returns the pipeline of a shader. Starts to compile the pipeline if it is not in the cache.
   *
   * @param label Name of the shader, for error messages.
   * @param op Operator of the kernel, for error messages.
   */
  get(code: string, kinds: readonly BindingKind[], label: string, op: string = label): Pipeline {
    const key = `${kinds.join()}\n${code}`;
    const found = this.pipelines.get(key);
    if (found !== undefined) return found;
    const layout = this.layout(kinds);
    const ready = this.compile(code, layout.pipeline, label, op);
    ready.catch(() => undefined); // reported when the pipeline is awaited
    const pipeline: Pipeline = { layout: layout.group, ready };
    this.pipelines.set(key, pipeline);
    return pipeline;
  }

  private async compile(
    code: string,
    layout: GPUPipelineLayout,
    label: string,
    op: string,
  ): Promise<GPUComputePipeline> {
    const { gpu } = this.device;
    gpu.pushErrorScope("validation");
    const module = gpu.createShaderModule({ code, label });
    const refused = gpu.popErrorScope();
    try {
      const pipeline = await this.device.awaiting(
        gpu.createComputePipelineAsync({ layout, compute: { module, entryPoint: "entry" }, label }),
      );
      const error = await refused;
      if (error === null) return pipeline;
      throw new Error(error.message);
    } catch (error) {
      this.device.check();
      const { messages } = await module.getCompilationInfo();
      const lines = messages.map(({ lineNum, message }) => `line ${lineNum}: ${message}`);
      const what = `the shader "${label}" does not compile: ${lines.length > 0 ? lines.join("; ") : String(error)}\n${numbered(code)}`;
      throw isUserOperator(op) ? new OperatorError(op, what) : new InvariantError(what);
    }
  }
}

const numbered = (code: string): string =>
  code
    .split("\n")
    .map((line, i) => `${String(i + 1).padStart(4)} ${line}`)
    .join("\n");
