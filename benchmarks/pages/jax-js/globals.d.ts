/** Version of jax-js; the bundler inserts the value. */
declare const __JAX_JS_VERSION__: string;
