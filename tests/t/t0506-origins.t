#!/bin/sh
# A wrong parameter is told by the place that said it: job.conf with its line, --set, a column of the list, the pipeline.
. "${abs_top_srcdir:?}/tests/lib.sh"
cd "$T" || exit 99
HOME=$T
export HOME
unset RECON_RUN RECON_SUB RECON_TASK RECON_PIPELINE
mkdir scan
echo scan >list.txt
dry() { recon-submit --dry-run --set submit.via=nobody "$@"; }
job() { printf 'name = "k";\ndatasets = "list.txt"; pipeline = "rgbd-to-mesh"; device = "cpu";\n%s\n' "$1" >job.conf; }
told() { # TEXT...: in one line
    one_line err 'one line'
    for t; do has err "$t" "told: $t"; done
}

job 'params = { fuse = { voxel = 0.02; }; };'
tap 0 'a good parameter' dry job.conf
job 'params = {
  fuse = { voxl = 0.02; }; };'
tap 64 'a wrong name in job.conf' dry job.conf
told 'job.conf:4: step' "has no parameter 'voxl', the nearest is 'voxel'"
lacks err rgbd-to-mesh.conf 'not the pipeline'
job 'params = { fuse = { voxel = "big"; }; };'
tap 64 'a wrong value in job.conf' dry job.conf
told "job.conf:3: step 'fuse': parameter 'voxel'"
job 'params = { fus = { voxel = 0.02; }; };'
tap 64 'a wrong step in job.conf' dry job.conf
told 'job.conf:3: ' "no step 'fus', the nearest is 'fuse'"
job 'params = { fuse = { voxel = 0.02; }; };'
tap 64 'a wrong name in --set' dry --set params.fuse.voxl=0.03 job.conf
told "--set 'params.fuse.voxl=0.03': step" "nearest is 'voxel'"
lacks err job.conf: 'not job.conf'
tap 64 'a wrong value in --set over a good one in job.conf' dry --set params.fuse.voxel=big job.conf
told "--set 'params.fuse.voxel=big': step"
echo 'params = { fuse = { voxl = 1.0; }; };' >recon.conf
tap 64 'a wrong name in the layer of the project' dry job.conf
told 'recon.conf:1: step'
rm recon.conf

printf 'path\tfuse.voxl\nscan\t0.02\n' >list.tsv
sed -i 's/list.txt/list.tsv/' job.conf
tap 64 'a wrong name in a column' dry job.conf
told "list.tsv: column 'fuse.voxl': step" "nearest is 'voxel'"
printf 'path\tfuse.voxel\nscan\t0.02\n' >list.tsv
tap 0 'a good column' dry job.conf

run() { recon-run --pipeline rgbd-to-mesh --device cpu --dataset scan --out o "$@"; }
tap 64 'recon-run: a wrong name in --set' run --set fuse.voxl=1
told "--set 'fuse.voxl': step" "nearest is 'voxel'"
tap 64 'recon-run: a wrong value in --set' run --set fuse.voxel=big
told "--set 'fuse.voxel': step"
printf 'version = 1;\nsteps = ( { name = "read"; kernel = "frames.read";\n  params = { evry = 2; }; } );\n' >p.conf
tap 64 'the pipeline itself' recon-run --pipeline p.conf --device cpu --dataset scan --out o
told 'p.conf:3: step' "nearest is 'every'"
finish
