// One step of Loop's subdivision by CGAL: peers_cgal MESH.obj REPEAT; prints "ms X cpu Y vertices N faces N", the least.
#include <CGAL/Simple_cartesian.h>
#include <CGAL/Surface_mesh.h>
#include <CGAL/Polygon_mesh_processing/IO/polygon_mesh_io.h>
#include <CGAL/subdivision_method_3.h>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>

typedef CGAL::Simple_cartesian<double> Kernel;
typedef CGAL::Surface_mesh<Kernel::Point_3> Mesh;

int main(int argc, char **argv)
{
    Mesh m;
    double best = 0, cpu = 0;
    size_t v = 0, f = 0;

    if (argc < 3 || !CGAL::Polygon_mesh_processing::IO::read_polygon_mesh(argv[1], m))
        return 1;
    for (int i = 0; i <= atoi(argv[2]); i++) {
        Mesh c = m;
        std::clock_t c0 = std::clock();
        auto t0 = std::chrono::steady_clock::now();
        CGAL::Subdivision_method_3::Loop_subdivision(c, CGAL::parameters::number_of_iterations(1));
        double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - t0).count();
        double c1 = double(std::clock() - c0) * 1e3 / CLOCKS_PER_SEC;
        best = i == 0 || ms < best ? ms : best;
        cpu = i == 0 || c1 < cpu ? c1 : cpu;
        v = c.number_of_vertices(), f = c.number_of_faces();
    }
    printf("ms %.4f cpu %.4f vertices %zu faces %zu\n", best, cpu, v, f);
    return 0;
}
