/** Node-API's own version: an addon of it loads in every later Node. */
export const nodeApiVersion = 8;
