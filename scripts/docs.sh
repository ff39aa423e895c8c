#!/usr/bin/env bash
# Install rnsdask with what its documentation needs into .venv, and build the site in build/docs; a warning is an error,
# and so is a search that does not find its page.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/venv.sh"

install_rnsdask docs
# Docstrings are those of the installed package, not of the checkout's folder.
export PYTHONSAFEPATH=1
site="$repository/build/docs"
# All pages are written each time, though not all are read: Sphinx forgets the index entries, which the search needs, of
# those that it does not write.
"$venv/bin/sphinx-build" --write-all -W --keep-going -q -j auto -d "$repository/build/doctrees" "$@" docs "$site"
if grep -rlE --include='*.html' '(src|href)="(https?:)?//[^"]*\.(js|css|woff2?)' "$site"; then
    die "these pages load scripts, styles or fonts from the network"
fi
"$venv/bin/python" "$repository/scripts/check_search.py" "$site"
echo "The site is in $site/index.html"
