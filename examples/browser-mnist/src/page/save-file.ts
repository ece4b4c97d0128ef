/** Saves bytes as a browser download. */
export const saveFile = (bytes: Uint8Array<ArrayBuffer>, name: string): void => {
  const url = URL.createObjectURL(new Blob([bytes], { type: "application/octet-stream" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  // The URL is revoked in the next task, when the download has started.
  setTimeout(() => URL.revokeObjectURL(url));
};
