import { setImmediate } from "node:timers/promises";

/** Memory of a device in bytes, which a test can read and limit. */
export interface ScarceMemory {
  budget: number;
  /** Bytes of buffers that were created and not destroyed. */
  readonly live: number;
  /** Resolves when all allocations in progress have been confirmed or rejected. */
  readonly quiet: () => Promise<void>;
}

class GPUOutOfMemoryError {
  readonly message: string;

  constructor(message: string) {
    this.message = message;
  }
}

/**
 * Returns `target` with some members replaced. Methods of native objects are called with the original object as `this`.
 */
const withMembers = <T extends object>(target: T, members: Partial<Record<keyof T, unknown>>): T =>
  new Proxy(target, {
    get: (_, name): unknown => {
      if (name in members) return members[name as keyof T];
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? (value as (...args: unknown[]) => unknown).bind(target) : value;
    },
  });

/**
 * Wraps a real WebGPU, so that its devices have `memory.budget` bytes of memory for buffers. Beyond the budget,
 * `createBuffer` returns an invalid buffer as WebGPU specifies (a real buffer; all commands that use it are rejected),
 * and the error goes to the innermost error scope, or to listeners if there is no scope. Memory of a destroyed buffer
 * becomes available only after submitted work has been awaited.
 */
export const scarceGpu = (real: GPU): { readonly gpu: GPU; readonly memory: ScarceMemory } => {
  let [live, asked] = [0, 0];
  /** Bytes of each destroyed buffer whose memory is not yet available, because submitted work has not been awaited. */
  const destroyedBytes = new Map<GPUBuffer, number>();
  const memory = {
    budget: Infinity,
    get live() {
      return live;
    },
    quiet: async () => {
      for (let still = 0; still < 2; still++) {
        if (asked > 0) still = 0;
        await setImmediate();
      }
    },
  };
  const answering = async <T>(answer: Promise<T>): Promise<T> => {
    asked++;
    try {
      return await answer;
    } finally {
      asked--;
    }
  };

  const wrapDevice = (device: GPUDevice): GPUDevice => {
    const scopes: { readonly filter: GPUErrorFilter; error: GPUOutOfMemoryError | null }[] = [];
    const listeners: ((event: unknown) => void)[] = [];

    const brokenBuffer = (descriptor: GPUBufferDescriptor): GPUBuffer => {
      const error = new GPUOutOfMemoryError(`no memory for ${descriptor.size} bytes`);
      const scope = scopes.findLast(({ filter }) => filter === "out-of-memory");
      if (scope !== undefined) scope.error ??= error;
      else for (const listener of listeners) queueMicrotask(() => listener({ error }));
      device.pushErrorScope("validation");
      const buffer = device.createBuffer({ ...descriptor, usage: 0 });
      void device.popErrorScope();
      return buffer;
    };
    const createBuffer = (descriptor: GPUBufferDescriptor): GPUBuffer => {
      const { size } = descriptor;
      if ([...destroyedBytes.values()].reduce((sum, bytes) => sum + bytes, live + size) > memory.budget)
        return brokenBuffer(descriptor);
      const buffer = device.createBuffer(descriptor);
      live += size;
      let destroyed = false;
      buffer.destroy = () => {
        if (destroyed) return;
        destroyed = true;
        live -= size;
        destroyedBytes.set(buffer, size);
        GPUBuffer.prototype.destroy.call(buffer);
      };
      return buffer;
    };
    const onSubmittedWorkDone = async (): Promise<undefined> => {
      const freed = [...destroyedBytes.keys()];
      await answering(device.queue.onSubmittedWorkDone());
      for (const buffer of freed) destroyedBytes.delete(buffer);
    };

    return withMembers(device, {
      createBuffer,
      queue: withMembers(device.queue, { onSubmittedWorkDone }),
      pushErrorScope: (filter: GPUErrorFilter) => {
        scopes.push({ filter, error: null });
        device.pushErrorScope(filter);
      },
      popErrorScope: async () => {
        const scope = scopes.pop()!;
        const scopeError = await answering(device.popErrorScope());
        return scope.error ?? scopeError;
      },
      addEventListener: (type: string, listener: (event: unknown) => void) => {
        if (type === "uncapturederror") listeners.push(listener);
        device.addEventListener(type as "uncapturederror", listener);
      },
    });
  };

  const gpu = withMembers(real, {
    requestAdapter: async (options?: GPURequestAdapterOptions) => {
      const adapter = await real.requestAdapter(options);
      return (
        adapter &&
        withMembers(adapter, {
          requestDevice: async (descriptor?: GPUDeviceDescriptor) =>
            wrapDevice(await adapter.requestDevice(descriptor)),
        })
      );
    },
  });
  return { gpu, memory };
};
