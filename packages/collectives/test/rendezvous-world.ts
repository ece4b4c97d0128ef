import type { Socket } from "node:net";
import { SkeinError } from "@skein/tensor-core";
import { expect } from "vitest";
import { type Coordinator, openCoordinator } from "../src/rendezvous/coordinator.ts";
import type { RendezvousEvent, RendezvousOptions } from "../src/rendezvous/coordinator-options.ts";
import type { Loss } from "../src/rendezvous/control-messages.ts";
import { type JoinOptions, type Member, openMember } from "../src/rendezvous/member.ts";
import { randomSecret } from "../src/security/secret.ts";

export const job = "job-5f0c2a";
export const build = "build-1";
export const secret: string = randomSecret();

/** A coordinator under test, and functions with which test processes join it. */
export interface Hosted {
  readonly coordinator: Coordinator;
  readonly events: RendezvousEvent[];
  /** Returns options for a process that matches the coordinator, except for the options in `different`. */
  readonly joining: (ranks: readonly number[], different?: Partial<JoinOptions>) => JoinOptions;
  readonly join: (ranks: readonly number[], different?: Partial<JoinOptions>) => Promise<Member>;
}

/** Resources opened by a test, which are closed after the test. */
export class Opened {
  readonly #closing: (() => unknown)[] = [];

  add(close: () => unknown): void {
    this.#closing.push(close);
  }

  async close(): Promise<void> {
    await Promise.all(this.#closing.splice(0).map((close) => close()));
  }
}

export const host = async (
  opened: Opened,
  worldSize: number,
  options: Partial<RendezvousOptions> = {},
): Promise<Hosted> => {
  const events: RendezvousEvent[] = [];
  const coordinator = await openCoordinator({
    worldSize,
    job,
    build,
    secret,
    onEvent: (event) => events.push(event),
    ...options,
  });
  opened.add(() => coordinator.close());
  const joining: Hosted["joining"] = (ranks, different = {}) => ({
    address: coordinator.address,
    ranks,
    addresses: ranks.map((rank) => ({ host: "127.0.0.1", port: 5000 + rank })),
    hostName: "here",
    worldSize,
    job,
    build,
    secret,
    joinTimeoutMilliseconds: 10_000,
    ...different,
  });
  const join: Hosted["join"] = async (ranks, different) => {
    const member = await openMember(joining(ranks, different));
    opened.add(() => member.close());
    return member;
  };
  return { coordinator, events, joining, join };
};

/**
 * Returns the error with which a promise rejects, after checking that the error is a SkeinError of one line without a
 * secret.
 */
export const failureOf = async (promise: Promise<unknown>): Promise<SkeinError> => {
  const error = await promise.then(
    () => new Error("it did not fail"),
    (error: unknown) => error,
  );
  expect(error).toBeInstanceOf(SkeinError);
  const { message } = error as SkeinError;
  expect(message).not.toContain("\n");
  expect(message).not.toContain(secret);
  return error as SkeinError;
};

export const nextLoss = (witness: Pick<Member, "onLost">): Promise<Loss> =>
  new Promise((resolve) => witness.onLost(resolve));

export const rest = (milliseconds: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, milliseconds));

/** Waits until `condition` returns true. */
export const until = async (condition: () => boolean): Promise<void> => {
  while (!condition()) await rest(2);
};

/** Waits until a connection is closed, by a goodbye or a reset; `once` of `node:events` would reject after a reset. */
export const closing = (socket: Socket): Promise<void> =>
  new Promise((resolve) => {
    socket.once("close", () => resolve());
  });
