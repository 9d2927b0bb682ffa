#!/usr/bin/env bash
# Builds the module against the nginx that is installed, with its headers (Debian: apt-get install nginx nginx-dev).
#
#   TOLLGATE_PREFIX=/usr/local ffi/examples/nginx/build.sh DIRECTORY
#
# TOLLGATE_PREFIX is where ffi/install.sh has put the library, which becomes part of the module. The module is then
# DIRECTORY/objs/ngx_http_tollgate_module.so. NGINX_SOURCE: the sources of that nginx, if not Debian's nginx-dev.
set -euo pipefail
[ $# = 1 ] || { echo "usage: build.sh DIRECTORY" >&2; exit 2; }
module=$(cd "$(dirname "$0")" && pwd)
export TOLLGATE_PREFIX=${TOLLGATE_PREFIX:-/usr/local}

mkdir -p "$1"
cd "$1"
if [ ! -f objs/Makefile ]; then
    cp -a "${NGINX_SOURCE:-/usr/share/nginx/src}/." .
    # No more than it takes for nginx to accept a module: --with-compat.
    ./configure --with-compat --add-dynamic-module="$module" >configure.log || { cat configure.log; exit 1; }
fi
make -s -f objs/Makefile modules
