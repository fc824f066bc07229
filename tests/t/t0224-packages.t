#!/bin/sh
# recon-pin export of what is installed in the pinned prefix: lists that conda and pip make it again from.
. "${abs_top_srcdir:?}/tests/lib.sh"
[ -e /etc/ld.so.preload ] && skip_all 'this host preloads a library everywhere'
unset LD_LIBRARY_PATH LD_PRELOAD VIRTUAL_ENV CONDA_PREFIX
cd "$T" || exit 99
site=env/lib/python3.11/site-packages
mkdir -p env/conda-meta $site
meta() { printf '{"name":"%s","url":"%s","md5":"%s","subdir":"%s"}\n' "$1" "$2" "$3" "$4" >"env/conda-meta/$1.json"; }
meta zlib https://conda.example/linux-64/zlib-1.3-h1_0.conda 0123456789abcdef0123456789abcdef linux-64
meta tzdata https://conda.example/noarch/tzdata-2024a-0.conda fedcba9876543210fedcba9876543210 noarch
meta home file:///home/ada/pkgs/home-1-0.conda 00 linux-64
meta odd 'https://x/a b' 00 linux-64
echo '{' >env/conda-meta/torn.json
mkfifo env/conda-meta/pipe.json
dist() { mkdir -p "$site/$1-$2.dist-info"; printf 'Metadata-Version: 2.1\nName: %s\nVersion: %s\n\nName: body\n' "$1" "$2" >"$site/$1-$2.dist-info/METADATA"; }
dist numpy 1.26.4; dist pip 24.0; dist torch 2.1.0+cu121; dist mine 0.1; dist gsplat 1.4.0
echo '{"url":"https://git.example/gsplat","vcs_info":{"vcs":"git","commit_id":"abc123"}}' >$site/gsplat-1.4.0.dist-info/direct_url.json
echo '{"url":"file:///home/ada/mine","dir_info":{"editable":true}}' >$site/mine-0.1.dist-info/direct_url.json
mkdir $site/evil-1.dist-info $site/old-2.0.egg-info
printf 'Name: evil --index-url http://x\nVersion: 1\n' >$site/evil-1.dist-info/METADATA
printf 'Name: old\r\nVersion: 2.0\r\n' >$site/old-2.0.egg-info/PKG-INFO

tap 0 'a pin of a prefix' env CONDA_PREFIX="$T/env" recon-pin capture -o c.pin /bin/true
tap 0 "conda's list" recon-pin export --format conda-explicit c.pin
printf '%s\n' '# conda create --prefix DIR --file THIS' '# platform: linux-64' @EXPLICIT \
    'https://conda.example/noarch/tzdata-2024a-0.conda#fedcba9876543210fedcba9876543210' \
    'https://conda.example/linux-64/zlib-1.3-h1_0.conda#0123456789abcdef0123456789abcdef' >want
if cmp -s out want; then ok 'is what conda reads'; else not_ok 'is what conda reads' "$(diff want out)"; fi
has err "'home.json' is left out" 'a package of a local file is told'; has err "'odd.json'" 'and an odd address'
has err "'torn.json' is left out: it cannot be read" 'and a torn file'; has err "'pipe.json'" 'and a pipe, which does not hang'
tap 0 "pip's list" recon-pin export --format requirements -o req.txt c.pin
printf '%s\n' '# Python 3.11, pip install -r THIS' 'gsplat @ git+https://git.example/gsplat@abc123' 'mine @ file:///home/ada/mine' \
    numpy==1.26.4 old==2.0 torch==2.1.0+cu121 >want
if cmp -s req.txt want; then ok 'is what pip reads'; else not_ok 'is what pip reads' "$(diff want req.txt)"; fi
has err 'torch==2.1.0+cu121' 'a build of its own index is told'; has err "'mine' was installed from" 'and a local folder'
has err "'evil-1.dist-info' is left out" 'a name with more in it is not passed on'
tap 0 'a pin without a prefix' recon-pin capture -o n.pin /bin/true
tap 64 'has no packages' recon-pin export --format requirements n.pin
one_line err 'told in one line'
mkdir empty
tap 0 'a pin of an empty prefix' env VIRTUAL_ENV="$T/empty" recon-pin capture -o e.pin /bin/true
tap 74 'holds none of conda' recon-pin export --format conda-explicit e.pin
tap 74 'nor of Python' recon-pin export --format requirements e.pin
if python3 -m venv --without-pip venv 2>/dev/null && [ -d venv/lib ]; then
    site=$(echo venv/lib/python3*/site-packages); dist a_real.name 1.0
    tap 0 'a venv' env VIRTUAL_ENV="$T/venv" recon-pin capture -o v.pin /bin/true
    tap 0 'its list' recon-pin export --format requirements v.pin
    has out 'a_real.name==1.0' 'names what is there'
else
    skip 'wants python3 with venv'
fi
finish
