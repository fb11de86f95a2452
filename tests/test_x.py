import bunraku.kinematics.library as l
from bunraku.kinematics.forward import rest_poses
def test_x(): assert rest_poses(l.skeleton("g1")).p_world_joint.shape==(34,3)
