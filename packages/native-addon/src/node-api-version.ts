/** Version of Node-API. Addons built for this version load in every later Node. */
export const nodeApiVersion = 8;
