#!/bin/sh
# Run a program that is named in full, as Dask's operator does with `dask worker`; all other words are a command of rnsdask.
case "${1:-}" in
dask | python | rnsdask | sh) exec "$@" ;;
*) exec rnsdask "$@" ;;
esac
