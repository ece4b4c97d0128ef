import { digitsText, secondsText, shareText } from "@skein/report";
import type { RunFacts } from "@skein/run-files/node";
import type { JSX } from "preact";
import { choose, chosen, colourIndex, detailed, filter, listed, runs, traced } from "./store.ts";

const numberText = (value: number | null, text: (value: number) => string = (one) => digitsText(one, 4)): string =>
  value === null ? "–" : text(value);

const stepText = ({ step, totalSteps }: RunFacts): string =>
  step === null ? "–" : totalSteps === null ? String(step) : `${step} of ${totalSteps}`;

const RunRow = ({ run }: { readonly run: RunFacts }): JSX.Element => {
  const isChosen = chosen.value.has(run.id);
  return (
    <tr>
      <th scope="row">
        <label class={isChosen ? `run-${colourIndex(run.id)}` : ""}>
          <input
            type="checkbox"
            checked={isChosen}
            onChange={(event) => choose([run.id], event.currentTarget.checked)}
          />
          <i aria-hidden="true" />
          <span>{run.id}</span>
        </label>
      </th>
      <td>
        <span class={`state ${run.state}`}>{run.state}</span>
        {run.loaded !== null && <span class="quiet"> {shareText(run.loaded)} read</span>}
        {run.fault !== null && (
          <span class="state failed" title={run.fault}>
            {" "}
            has a fault
          </span>
        )}
      </td>
      <td>{stepText(run)}</td>
      <td>{numberText(run.loss)}</td>
      <td>{numberText(run.testLoss)}</td>
      <td>{numberText(run.accuracy, shareText)}</td>
      <td>{numberText(run.samplesPerSecond, (rate) => digitsText(rate))}</td>
      <td>{secondsText(run.seconds)}</td>
      <td>
        <button
          type="button"
          aria-expanded={detailed.value === run.id}
          onClick={() => {
            detailed.value = detailed.value === run.id ? undefined : run.id;
            traced.value = undefined;
          }}
        >
          details<span class="unseen"> of {run.id}</span>
        </button>
      </td>
    </tr>
  );
};

export const RunList = (): JSX.Element => (
  <section aria-labelledby="runs-heading">
    <h2 id="runs-heading">Runs</h2>
    <div class="toolbar">
      <label>
        filter{" "}
        <input
          type="search"
          size={28}
          placeholder="optimizer.kind=adam batch>=64"
          aria-describedby="filter-help"
          value={filter.value}
          onInput={(event) => {
            filter.value = event.currentTarget.value;
          }}
        />
      </label>
      <button
        type="button"
        onClick={() =>
          choose(
            listed.value.map(({ id }) => id),
            true,
          )
        }
      >
        show all
      </button>
      <button type="button" onClick={() => choose([...chosen.value], false)}>
        show none
      </button>
      <output>
        {listed.value.length} of {runs.value.size} runs
      </output>
    </div>
    <p id="filter-help" class="quiet">
      words of a name or state, and job options: key=value, key!=value, key&gt;1, key=1..8
    </p>
    <div class="scroll runs" tabIndex={0} role="region" aria-label="table of runs">
      <table>
        <thead>
          <tr>
            {["run", "state", "step", "loss", "held-out loss", "accuracy", "samples/s", "trained for"].map((name) => (
              <th scope="col" key={name}>
                {name}
              </th>
            ))}
            <td />
          </tr>
        </thead>
        <tbody>
          {listed.value.map((run) => (
            <RunRow key={run.id} run={run} />
          ))}
        </tbody>
      </table>
    </div>
    {runs.value.size === 0 && <p>No runs yet; the first run appears here after its first step.</p>}
  </section>
);
