import { expect, test } from "vitest";
import { type FileContent, foreignContent } from "./foreign-content.ts";

const bytesOf = (text: string): Uint8Array => Uint8Array.from(text, (character) => character.charCodeAt(0));

const heads: readonly (readonly [name: string, head: string, noun: string])[] = [
  [
    "LFS",
    "version https://git-lfs.github.com/spec/v1\noid sha256:74541f\nsize 1302138752\n",
    "is a pointer of Git LFS, ",
  ],
  ["annex", "/annex/objects/SHA256E-s31390--f50d7ac4.tar\n", "is a pointer of git-annex, not the file: run git annex"],
  ["HTML", "\n<!DOCTYPE html>\n<html><head><title>Sign in</title>", "is an HTML page, "],
  ["XHTML", '\xef\xbb\xbf<?xml version="1.0"?>\n<!-- a --><HTML lang="en">', "is an HTML page, "],
  ["gzip", "\x1f\x8b\x08\x08\x51\x3a\x07\x61\0\x03a.txt\0", "is compressed by gzip, "],
  ["Zstandard", "\x28\xb5\x2f\xfd\x04\0", "is compressed by Zstandard, "],
  ["xz", "\xfd7zXZ\0\0\x04", "is compressed by xz, "],
  ["bzip2", "BZh91AY&SY\x01", "is compressed by bzip2, "],
  ["zip", "PK\x03\x04\x14\0\x08\0", "is a zip archive, "],
  ["pickle 4", "\x80\x04\x95\x0b\0\0\0\0\0\0\0]\x94", "is a Python pickle, "],
  ["PyTorch before zip", "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", "is a Python pickle, "],
  ["NumPy", "\x93NUMPY\x01\0v\0{'descr'", "is an array of NumPy (.npy), "],
  ["Parquet", "PAR1\x15\0", "is a Parquet file, "],
  ["Arrow", "ARROW1\0\0", "is a file of Arrow, "],
  ["GGUF", "GGUF\x03\0\0\0", "is a GGUF file, "],
  ["safetensors", '\x40\0\0\0\0\0\0\0{"a":', "is a safetensors file, "],
  ["HDF5", "\x89HDF\r\n\x1a\n", "is an HDF5 file, "],
  ["SQLite", "SQLite format 3\0", "is a database of SQLite, "],
  ["PDF", "%PDF-1.7\n", "is a PDF, "],
  ["tar", `a.txt${"\0".repeat(252)}ustar\0`, "is a tar file, "],
];

test.each(heads)(
  "%s is recognized by its first bytes, wherever text, JSON or tokens are asked for",
  (format, head, noun) => {
    for (const holds of ["text", "json", "csv", "image"] as const)
      expect(foreignContent(bytesOf(head), holds)).toContain(noun);
    if (format !== "NumPy") expect(foreignContent(bytesOf(head), "tokens")).toContain(noun); // accepted as tokens
  },
);

const short: readonly (readonly [name: string, head: string])[] = [
  ["UTF-16 with a mark", "\xff\xfea\0"],
  ["UTF-16, high bytes first", "\xfe\xff\0a"],
  ["UTF-16 without a mark", "T\0h\0e\0"],
  ["a pickle of protocol 2", "\x80\x02]q\0."],
  ["bytes of 0", "a text\0"],
];

test.each(short)("%s is not text, but tokens may begin with it", (_, head) => {
  for (const holds of ["text", "json", "csv"] as const)
    expect(foreignContent(bytesOf(head), holds)).toMatch(/^is .*: /);
  expect(foreignContent(bytesOf(head), "tokens")).toBeUndefined();
});

test("accepts the reader's own format, and text in any language", () => {
  const own: readonly (readonly [FileContent, string])[] = [
    ["npy", "NumPy"],
    ["npz", "zip"],
    ["parquet", "Parquet"],
    ["safetensors", "safetensors"],
    ["tar", "tar"],
    ["gzip", "gzip"],
    ["idx", "gzip"],
    ["html", "HTML"],
  ];
  for (const [holds, format] of own)
    expect(foreignContent(bytesOf(heads.find(([name]) => name === format)![1]), holds)).toBeUndefined();
  expect(foreignContent(bytesOf('\x80\x05\0\0\0\0\0\0{"a":'), "safetensors")).toBeUndefined();
  for (const text of ["", "a", "Été", "\uFEFF{}", "漢字かな", "<p>", "PK", "version 2", "\0".repeat(0)])
    for (const holds of ["text", "json", "csv", "tokens"] as const)
      expect(foreignContent(new TextEncoder().encode(text), holds)).toBeUndefined();
});

test("text is not a token file, unless it is too short to decide", () => {
  const text = bytesOf('{"text": "Call me Ishmael. Some years ago - never mind how long precisely"}\r\n');
  expect(foreignContent(text, "tokens")).toMatch(/^is text, not a file of plain tokens: use data: {kind: text}/);
  expect(foreignContent(text.subarray(0, 60), "tokens")).toBeUndefined();
  expect(foreignContent(Uint8Array.of(...text, 0x80), "tokens")).toBeUndefined();
});

test("names a Git LFS pointer with the command that fetches the file", () => {
  expect(foreignContent(bytesOf(heads[0]![1]), "safetensors")).toBe(
    "is a pointer of Git LFS, not the file: run git lfs pull",
  );
});
