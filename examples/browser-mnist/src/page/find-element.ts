/** Returns the element of the page with an id and a type. @throws TypeError if there is no such element. */
export const findElement = <T extends HTMLElement>(id: string, type: abstract new () => T): T => {
  const element = document.getElementById(id);
  if (!(element instanceof type)) throw new TypeError(`the page has no ${type.name} with the id ${id}`);
  return element;
};
