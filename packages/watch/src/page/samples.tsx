import { useSignal } from "@preact/signals";
import type { Leaves } from "@skein/data";
import { digitsText, shareText } from "@skein/report";
import type { Excerpt, JsonNumber, SampleImage, StoredSample } from "@skein/run-files/node";
import type { DType } from "@skein/tensor-core";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { ShownSamples } from "../read-samples.ts";

/** Image of a sample, drawn pixel by pixel, so that its data is never interpreted as a URL or an image format. */
const Picture = ({ image, words }: { readonly image: SampleImage; readonly words: string }): JSX.Element => {
  const place = useRef<HTMLCanvasElement>(null);
  const { width, height, channels, bytes } = image;
  useEffect(() => {
    const context = place.current?.getContext("2d");
    if (context === null || context === undefined) return;
    const values = Uint8Array.from(atob(bytes), (letter) => letter.charCodeAt(0));
    const pixels = new ImageData(width, height);
    for (let pixel = 0; pixel < width * height; pixel++) {
      for (let colour = 0; colour < 3; colour++)
        pixels.data[4 * pixel + colour] = values[channels * pixel + (channels === 3 ? colour : 0)] ?? 0;
      pixels.data[4 * pixel + 3] = 255;
    }
    context.putImageData(pixels, 0, 0);
  }, [image]);
  return <canvas ref={place} width={width} height={height} role="img" aria-label={words} />;
};

const numberText = (value: JsonNumber): string => (typeof value === "string" ? value : digitsText(value, 3));

const likely = (value: JsonNumber): string => (typeof value === "string" ? value : shareText(value));

const list = (values: readonly JsonNumber[]): string => values.map(numberText).join(", ");

/** Formats an element of a tensor. Integers are shown with all digits, because they may be identifiers. */
const entry = (value: JsonNumber, dtype: DType): string =>
  dtype === "bool" ? (value === 0 ? "false" : "true") : /^[iu]/.test(dtype) ? String(value) : numberText(value);

/** List of tensors by path, each with its first values. */
const Tensors = ({ excerpts }: { readonly excerpts: Leaves<Excerpt<JsonNumber>> }): JSX.Element => (
  <dl class="tensors">
    {Object.entries(excerpts).map(([path, { dtype, shape, first }]) => {
      const size = shape.reduce((product, length) => product * length, 1);
      return (
        <div key={path}>
          <dt>
            {path}{" "}
            <span class="quiet">
              {dtype}[{shape.join(", ")}]
            </span>
          </dt>
          <dd>
            {size === 0 ? <span class="quiet">no values</span> : first.map((value) => entry(value, dtype)).join(", ")}
            {size > first.length && <span class="quiet">, … {size - first.length} more</span>}
          </dd>
        </div>
      );
    })}
  </dl>
);

/** An image of a sample, with the path of its field. The field `inputs` is shown without a name. */
interface NamedImage {
  readonly field: string;
  readonly image: SampleImage;
}

const Pictures = ({ images, name }: { readonly images: readonly NamedImage[]; readonly name: string }): JSX.Element => (
  <>
    {images.map(({ field, image }) =>
      field === "" ? (
        <Picture key={field} image={image} words={name} />
      ) : (
        <figure key={field}>
          <Picture image={image} words={`${field} of ${name}`} />
          <figcaption class="quiet">{field}</figcaption>
        </figure>
      ),
    )}
  </>
);

/**
 * Text of a sample. Text that consists of whitespace only is shown as its length, because models generate whitespace
 * early in training.
 */
const Text = ({ text }: { readonly text: string }): JSX.Element =>
  text.trim() === "" ? <span class="quiet">{text.length} blanks</span> : <>{text}</>;

const Sample = ({
  sample,
  images,
}: {
  readonly sample: StoredSample;
  readonly images: readonly NamedImage[];
}): JSX.Element => {
  const name = `held-out sample ${sample.index}`;
  if (sample.kind === "text")
    return (
      <li class="text-sample">
        <p class="quiet">{name}</p>
        <dl>
          <dt>given</dt>
          <dd>
            <Text text={sample.prompt} />
          </dd>
          <dt>continued</dt>
          <dd>
            <Text text={sample.continuation} />
          </dd>
          <dt>in the data</dt>
          <dd>
            <Text text={sample.truth} />
          </dd>
        </dl>
      </li>
    );
  if (sample.kind === "tree")
    return (
      <li class="tree-sample">
        <p class="quiet">{name}</p>
        <Pictures images={images} name={name} />
        <dl>
          <dt>given</dt>
          <dd>
            <Tensors excerpts={sample.given} />
          </dd>
          <dt>output</dt>
          <dd>
            <Tensors excerpts={sample.made} />
          </dd>
        </dl>
        {sample.leftOut !== undefined && <p class="quiet">and {sample.leftOut} more tensors</p>}
      </li>
    );
  const isRight = sample.kind === "classes" ? sample.predicted === sample.label : undefined;
  return (
    <li class={isRight === undefined ? "" : isRight ? "right" : "wrong"}>
      <Pictures images={images} name={name} />
      {sample.kind === "classes" ? (
        <p>
          {isRight ? "✓" : "✗"}{" "}
          {sample.predicted < 0
            ? "no prediction: its logits are not numbers"
            : `predicted ${sample.predictedName ?? sample.predicted} (${likely(sample.probability)})`}
          {isRight ? "" : `, is ${sample.labelName ?? sample.label}`}
        </p>
      ) : (
        <p>
          predicted {list(sample.predicted)}; is {list(sample.label)}
        </p>
      )}
    </li>
  );
};

/** Returns the images of a sample by name, see `SamplesLine`. */
const imagesOf = (index: number, images: ShownSamples["images"]): NamedImage[] =>
  Object.entries(images).flatMap(([key, image]) => {
    const [own, ...path] = key.split(".");
    return own === String(index) ? [{ field: path.join("."), image }] : [];
  });

/** List of a model's outputs for some held-out samples, at the last evaluations. */
export const Samples = ({
  run,
  evaluations,
}: {
  readonly run: string;
  readonly evaluations: number;
}): JSX.Element | null => {
  const loaded = useSignal<ShownSamples | undefined>(undefined);
  const step = useSignal<number | undefined>(undefined);
  useEffect(() => {
    let isWanted = true;
    fetch(`/api/samples?${new URLSearchParams({ run }).toString()}`)
      .then(async (response) => {
        const samples = response.ok ? ((await response.json()) as ShownSamples) : undefined;
        if (isWanted) loaded.value = samples;
      })
      .catch(() => undefined); // the page already shows that the connection is lost
    return () => {
      isWanted = false;
    };
  }, [run, evaluations]);
  const all = loaded.value?.evaluations ?? [];
  const shown = all.find((one) => one.step === step.value) ?? all[0];
  const fault = loaded.value?.fault;
  if (shown === undefined) return fault === undefined ? null : <p class="fault">samples: {fault}</p>;
  return (
    <details open>
      <summary>model outputs for {shown.samples.length} held-out samples</summary>
      {fault !== undefined && <p class="fault">{fault}</p>}
      <label>
        after step{" "}
        <select
          value={String(shown.step)}
          onChange={(event) => {
            const chosen = Number(event.currentTarget.value);
            step.value = chosen === all[0]?.step ? undefined : chosen; // follows later evaluations
          }}
        >
          {all.map((one) => (
            <option key={one.step} value={String(one.step)}>
              {one.step}
            </option>
          ))}
        </select>
      </label>
      <ul class="samples">
        {shown.samples.map((sample) => (
          <Sample key={sample.index} sample={sample} images={imagesOf(sample.index, loaded.value?.images ?? {})} />
        ))}
      </ul>
    </details>
  );
};
