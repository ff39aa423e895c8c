#!/usr/bin/env bash
# Run the tests of lazy arrays, and the laws of one layout, with Dask's setting array.query-planning on; arguments go to
# pytest. What Dask's arrays lack then is one error, and such tests are skipped.
set -euo pipefail
export DASK_ARRAY__QUERY_PLANNING=True
exec "$(dirname "${BASH_SOURCE[0]}")/test.sh" tests/lazy/test_query_planning.py tests/test_laws.py \
    -k "test_query_planning or (test_law and interval and chunks and not chunks-2d)" "$@"
