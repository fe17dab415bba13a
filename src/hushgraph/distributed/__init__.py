"""Graphs larger than one machine or its memory: the same result to the bit, from files and pure tasks.

The nodes are cut into partitions, each with a ghost zone as deep as the polynomials reach, so a task computes its partition without
messages. Files are the only state: any task can run again, and the same call continues a run that was killed. With a Dask client the
tasks run on its workers; without one they run in this process, one after the other, and the graph need not fit into memory.

    planning, preparing, denoising     `plan`, `prepare`, `denoise` and `resume`
    sources, edges, signals, results,  what comes in and goes out; addresses: files here or in object stores
    guide_files
    partitioning, adjacency_rows,      a graph in partitions with ghost zones, its spectrum and its components
    ghosts, spectrum, components
    wavelet_tasks, threshold_tasks,    the tasks of a run
    let_tasks, filter_tasks,
    second_tasks, guide_tasks
    reweighting                        a graph with edges that are weak where a prediction jumps
    noise_levels, let_driver,          what the driver does between the tasks
    guide_driver, risks
    cost_model, ghost_estimate         memory, time and ghosts before anything runs
    runner, store, object_store        running tasks; files that are whole or missing, on a disk or in an object store
"""

from hushgraph._extras import face

__getattr__, __dir__, __all__ = face(__name__, __file__)
