import type { JSX } from "preact";
import { render } from "preact";
import { Charts } from "./charts.tsx";
import { Details } from "./details.tsx";
import { Differences } from "./differences.tsx";
import { followAddress } from "./follow-address.ts";
import { RunList } from "./run-list.tsx";
import { connect, connection } from "./store.ts";
import { chooseScheme, followScheme, scheme, schemeChoices } from "./theme.ts";

const connectionTexts = { connecting: "connecting", live: "live", lost: "connection lost; reconnecting" } as const;

const Page = (): JSX.Element => (
  <>
    <header>
      <h1>Skein runs</h1>
      <p role="status" class={`connection ${connection.value}`}>
        {connectionTexts[connection.value]}
      </p>
      <label>
        colours{" "}
        <select
          value={scheme.value}
          onChange={(event) => chooseScheme(schemeChoices.find((one) => one === event.currentTarget.value) ?? "system")}
        >
          {schemeChoices.map((one) => (
            <option key={one} value={one}>
              {one}
            </option>
          ))}
        </select>
      </label>
    </header>
    <main>
      <RunList />
      <Details />
      <Differences />
      <Charts />
    </main>
  </>
);

followScheme();
followAddress();
connect();
const container = document.querySelector("#page")!;
container.replaceChildren();
render(<Page />, container);
