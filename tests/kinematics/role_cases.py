"""Bodies to read roles from: one body under many tools' names, trees that differ from it, and what real characters should give."""

from __future__ import annotations

# A standing body, left half: joint → (parent, position in the world). `{s}` is the side; the right half is its mirror image.
BODY = {
    "hips": (None, (0, 0.95, 0)),
    "spine": ("hips", (0, 1.05, 0)),
    "spine2": ("spine", (0, 1.18, 0)),
    "chest": ("spine2", (0, 1.3, 0)),
    "neck": ("chest", (0, 1.5, 0)),
    "head": ("neck", (0, 1.6, 0.02)),
    "{s}_collar": ("chest", (0.04, 1.45, 0)),
    "{s}_shoulder": ("{s}_collar", (0.18, 1.45, 0)),
    "{s}_elbow": ("{s}_shoulder", (0.45, 1.45, 0)),
    "{s}_hand": ("{s}_elbow", (0.7, 1.45, 0)),
    "{s}_hip": ("hips", (0.1, 0.92, 0)),
    "{s}_knee": ("{s}_hip", (0.1, 0.5, 0.02)),
    "{s}_foot": ("{s}_knee", (0.1, 0.09, 0)),
    "{s}_toe": ("{s}_foot", (0.1, 0.02, 0.12)),
}
TRUNK = ("hips", "spine", "spine2", "chest", "neck", "head")
LIMBS = ("collar", "shoulder", "elbow", "hand", "hip", "knee", "foot", "toe")

# tool → names of the trunk, then of the left limbs, in the order above; how left turns into right
TOOLS = {
    "mixamo": (
        "mixamorig:Hips mixamorig:Spine mixamorig:Spine1 mixamorig:Spine2 mixamorig:Neck mixamorig:Head",
        "mixamorig:LeftShoulder mixamorig:LeftArm mixamorig:LeftForeArm mixamorig:LeftHand "
        "mixamorig:LeftUpLeg mixamorig:LeftLeg mixamorig:LeftFoot mixamorig:LeftToeBase",
        ("Left", "Right"),
    ),
    "mixamo, twice in one scene": (
        "mixamorig1:Hips mixamorig1:Spine mixamorig1:Spine1 mixamorig1:Spine2 mixamorig1:Neck mixamorig1:Head",
        "mixamorig1:LeftShoulder mixamorig1:LeftArm mixamorig1:LeftForeArm mixamorig1:LeftHand "
        "mixamorig1:LeftUpLeg mixamorig1:LeftLeg mixamorig1:LeftFoot mixamorig1:LeftToeBase",
        ("Left", "Right"),
    ),
    "mixamo without separators": (
        "mixamorigHips mixamorigSpine mixamorigSpine1 mixamorigSpine2 mixamorigNeck mixamorigHead",
        "mixamorigLeftShoulder mixamorigLeftArm mixamorigLeftForeArm mixamorigLeftHand "
        "mixamorigLeftUpLeg mixamorigLeftLeg mixamorigLeftFoot mixamorigLeftToeBase",
        ("Left", "Right"),
    ),
    "lowercase": (
        "hips spine spine1 spine2 neck head",
        "leftshoulder leftarm leftforearm lefthand leftupleg leftleg leftfoot lefttoebase",
        ("left", "right"),
    ),
    "quaternius": (
        "Hips Abdomen Torso Chest Neck Head",
        "Shoulder.L UpperArm.L LowerArm.L Wrist.L UpperLeg.L LowerLeg.L Foot.L Toes.L",
        (".L", ".R"),
    ),
    "unreal": (
        "pelvis spine_01 spine_02 spine_03 neck_01 head",
        "clavicle_l upperarm_l lowerarm_l hand_l thigh_l calf_l foot_l ball_l",
        ("_l", "_r"),
    ),
    "vroid": (
        "J_Bip_C_Hips J_Bip_C_Spine J_Bip_C_Chest J_Bip_C_UpperChest J_Bip_C_Neck J_Bip_C_Head",
        "J_Bip_L_Shoulder J_Bip_L_UpperArm J_Bip_L_LowerArm J_Bip_L_Hand J_Bip_L_UpperLeg J_Bip_L_LowerLeg J_Bip_L_Foot J_Bip_L_ToeBase",
        ("_L_", "_R_"),
    ),
    "vrm": (
        "hips spine chest upperChest neck head",
        "leftShoulder leftUpperArm leftLowerArm leftHand leftUpperLeg leftLowerLeg leftFoot leftToes",
        ("left", "right"),
    ),
    "rigify": (
        "DEF-spine DEF-spine.001 DEF-spine.002 DEF-spine.003 DEF-spine.004 DEF-spine.005",
        "DEF-shoulder.L DEF-upper_arm.L DEF-forearm.L DEF-hand.L DEF-thigh.L DEF-shin.L DEF-foot.L DEF-toe.L",
        (".L", ".R"),
    ),
    "vrm in blender": (
        "hips spine chest upper_chest neck head",
        "shoulder.L upper_arm.L lower_arm.L hand.L upper_leg.L lower_leg.L foot.L toes.L",
        (".L", ".R"),
    ),
    "rigify without dots": (
        "DEF-spine DEF-spine001 DEF-spine002 DEF-spine003 DEF-spine004 DEF-spine005",
        "DEF-shoulderL DEF-upper_armL DEF-forearmL DEF-handL DEF-thighL DEF-shinL DEF-footL DEF-toeL",
        ("L", "R"),
    ),
    "metarig": (
        "spine spine.001 spine.002 spine.003 spine.004 spine.005",
        "shoulder.L upper_arm.L forearm.L hand.L thigh.L shin.L foot.L toe.L",
        (".L", ".R"),
    ),
    "biped": (
        "Bip01 Pelvis|Bip01 Spine|Bip01 Spine1|Bip01 Spine2|Bip01 Neck|Bip01 Head",
        "Bip01 L Clavicle|Bip01 L UpperArm|Bip01 L Forearm|Bip01 L Hand|Bip01 L Thigh|Bip01 L Calf|Bip01 L Foot|Bip01 L Toe0",
        (" L ", " R "),
    ),
    "biped with underscores": (
        "Bip001_Pelvis Bip001_Spine Bip001_Spine1 Bip001_Spine2 Bip001_Neck Bip001_Head",
        "Bip001_L_Clavicle Bip001_L_UpperArm Bip001_L_Forearm Bip001_L_Hand Bip001_L_Thigh Bip001_L_Calf Bip001_L_Foot Bip001_L_Toe0",
        ("_L_", "_R_"),
    ),
    "valve": (
        "ValveBiped.Bip01_Pelvis ValveBiped.Bip01_Spine ValveBiped.Bip01_Spine1 ValveBiped.Bip01_Spine2 ValveBiped.Bip01_Neck1 ValveBiped.Bip01_Head1",
        "ValveBiped.Bip01_L_Clavicle ValveBiped.Bip01_L_UpperArm ValveBiped.Bip01_L_Forearm ValveBiped.Bip01_L_Hand ValveBiped.Bip01_L_Thigh "
        "ValveBiped.Bip01_L_Calf ValveBiped.Bip01_L_Foot ValveBiped.Bip01_L_Toe0",
        ("_L_", "_R_"),
    ),
    "poser": (
        "hip abdomen abdomen2 chest neck head",
        "lCollar lShldr lForeArm lHand lThigh lShin lFoot lToe",
        ("l", "r"),
    ),
    "daz": (
        "hip abdomenLower abdomenUpper chestLower neckLower head",
        "lCollar lShldrBend lForearmBend lHand lThighBend lShin lFoot lToe",
        ("l", "r"),
    ),
    "xsens": (
        "Hips Chest Chest2 Chest3 Neck Head",
        "LeftCollar LeftShoulder LeftElbow LeftWrist LeftHip LeftKnee LeftAnkle LeftToe",
        ("Left", "Right"),
    ),
    "smpl": (
        "Pelvis Spine1 Spine2 Spine3 Neck Head",
        "L_Collar L_Shoulder L_Elbow L_Wrist L_Hip L_Knee L_Ankle L_Foot",
        ("L_", "R_"),
    ),
    "smpl as FBX": (
        "m_avg_Pelvis m_avg_Spine1 m_avg_Spine2 m_avg_Spine3 m_avg_Neck m_avg_Head",
        "m_avg_L_Collar m_avg_L_Shoulder m_avg_L_Elbow m_avg_L_Wrist m_avg_L_Hip m_avg_L_Knee m_avg_L_Ankle m_avg_L_Foot",
        ("_L_", "_R_"),
    ),
    "smpl-x": (
        "pelvis spine1 spine2 spine3 neck head",
        "left_collar left_shoulder left_elbow left_wrist left_hip left_knee left_ankle left_foot",
        ("left", "right"),
    ),
    "acclaim": (
        "root lowerback upperback thorax lowerneck head",
        "lclavicle lhumerus lradius lwrist lfemur ltibia lfoot ltoes",
        ("l", "r"),
    ),
    "advanced skeleton": (
        "Root_M Spine1_M Spine2_M Chest_M Neck_M Head_M",
        "Scapula_L Shoulder_L Elbow_L Wrist_L Hip_L Knee_L Ankle_L Toes_L",
        ("_L", "_R"),
    ),
    "makehuman": (
        "root spine05 spine04 spine03 neck01 head",
        "clavicle.L upperarm01.L lowerarm01.L wrist.L upperleg01.L lowerleg01.L foot.L toe1-1.L",
        (".L", ".R"),
    ),
    "character creator": (
        "CC_Base_Hip CC_Base_Waist CC_Base_Spine01 CC_Base_Spine02 CC_Base_NeckTwist01 CC_Base_Head",
        "CC_Base_L_Clavicle CC_Base_L_Upperarm CC_Base_L_Forearm CC_Base_L_Hand CC_Base_L_Thigh CC_Base_L_Calf CC_Base_L_Foot CC_Base_L_ToeBase",
        ("_L_", "_R_"),
    ),
    "source 2": (
        "pelvis spine_0 spine_1 spine_2 neck_0 head",
        "clavicle_L arm_upper_L arm_lower_L hand_L leg_upper_L leg_lower_L ankle_L ball_L",
        ("_L", "_R"),
    ),
    "character's name first": (
        "Bob_Hips Bob_Spine Bob_Spine1 Bob_Chest Bob_Neck Bob_Head",
        "Bob_LeftShoulder Bob_LeftArm Bob_LeftForeArm Bob_LeftHand Bob_LeftUpLeg Bob_LeftLeg Bob_LeftFoot Bob_LeftToe",
        ("Left", "Right"),
    ),
    "plain english": (
        "Hips|Spine|Spine 2|Chest|Neck|Head",
        "Left shoulder|Left arm|Left elbow|Left wrist|Left leg|Left knee|Left ankle|Left toe",
        ("Left", "Right"),
    ),
    "soma": (
        "Hips Spine1 Spine2 Chest Neck1 Head",
        "LeftShoulder LeftArm LeftForeArm LeftHand LeftLeg LeftShin LeftFoot LeftToeBase",
        ("Left", "Right"),
    ),
    "auto-rig pro": (
        "root.x spine_01.x spine_02.x spine_03.x neck.x head.x",
        "shoulder.l arm_stretch.l forearm_stretch.l hand.l thigh_stretch.l leg_stretch.l foot.l toes_01.l",
        (".l", ".r"),
    ),
}

# Trees that differ from the plain body: lines of `name x y z`, one more space for each step down; below them what is expected.
TREES = {
    # the CMU database as BVH: dummies between hips and thighs, on the neck and in the hands
    "cmu": (
        """
        Hips 0 0.95 0
         LHipJoint 0 0.95 0
          LeftUpLeg 0.1 0.92 0
           LeftLeg 0.15 0.5 0
            LeftFoot 0.2 0.09 0
             LeftToeBase 0.2 0.03 0.12
         RHipJoint 0 0.95 0
          RightUpLeg -0.1 0.92 0
           RightLeg -0.15 0.5 0
            RightFoot -0.2 0.09 0
             RightToeBase -0.2 0.03 0.12
         LowerBack 0 0.95 0
          Spine 0 1.06 0
           Spine1 0 1.17 0
            Neck 0 1.17 0
             Neck1 0 1.27 0
              Head 0 1.37 0
            LeftShoulder 0 1.17 0
             LeftArm 0.18 1.24 0
              LeftForeArm 0.45 1.24 0
               LeftHand 0.65 1.24 0
                LeftFingerBase 0.65 1.24 0
                 LeftHandIndex1 0.7 1.24 0
                LThumb 0.65 1.24 0
            RightShoulder 0 1.17 0
             RightArm -0.18 1.24 0
              RightForeArm -0.45 1.24 0
               RightHand -0.65 1.24 0
                RightFingerBase -0.65 1.24 0
                 RightHandIndex1 -0.7 1.24 0
                RThumb -0.65 1.24 0
        """,
        """hips=Hips,spine=LowerBack,chest=Spine1,neck=Neck,head=Head,left_hip=LeftUpLeg,left_knee=LeftLeg,left_foot=LeftFoot,
        left_toe=LeftToeBase,left_collar=LeftShoulder,left_shoulder=LeftArm,left_elbow=LeftForeArm,left_hand=LeftHand,right_hip=RightUpLeg""",
    ),
    # thighs on the spine, collars on the neck, toes that end in a nub
    "old biped": (
        """
        Bip01 0 0.95 0
         Bip01 Pelvis 0 0.95 0
          Bip01 Spine 0 1.05 0
           Bip01 L Thigh 0.1 0.92 0
            Bip01 L Calf 0.1 0.5 0
             Bip01 L Foot 0.1 0.09 0
              Bip01 L Toe0 0.1 0.02 0.1
               Bip01 L Toe0Nub 0.1 0.02 0.15
           Bip01 R Thigh -0.1 0.92 0
            Bip01 R Calf -0.1 0.5 0
             Bip01 R Foot -0.1 0.09 0
              Bip01 R Toe0 -0.1 0.02 0.1
           Bip01 Spine1 0 1.15 0
            Bip01 Spine2 0 1.3 0
             Bip01 Neck 0 1.45 0
              Bip01 L Clavicle 0.05 1.43 0
               Bip01 L UpperArm 0.18 1.43 0
                Bip01 L Forearm 0.45 1.43 0
                 Bip01 L Hand 0.7 1.43 0
              Bip01 R Clavicle -0.05 1.43 0
               Bip01 R UpperArm -0.18 1.43 0
                Bip01 R Forearm -0.45 1.43 0
                 Bip01 R Hand -0.7 1.43 0
              Bip01 Head 0 1.55 0
               Bip01 Ponytail1 0 1.6 -0.1
        """,
        """hips=Bip01 Spine,spine=Bip01 Spine1,chest=Bip01 Spine2,neck=Bip01 Neck,head=Bip01 Head,left_toe=Bip01 L Toe0,
        left_collar=Bip01 L Clavicle,right_hip=Bip01 R Thigh""",
    ),
    # pelvis and twist bones beside the chain
    "genesis": (
        """
        hip 0 0.95 0
         pelvis 0 0.94 0
          lThighBend 0.1 0.92 0
           lThighTwist 0.1 0.7 0
            lShin 0.1 0.5 0
             lFoot 0.1 0.09 0
              lMetatarsals 0.1 0.04 0.06
               lToe 0.1 0.02 0.1
                lBigToe 0.08 0.02 0.14
                lSmallToe1 0.12 0.02 0.14
          rThighBend -0.1 0.92 0
           rThighTwist -0.1 0.7 0
            rShin -0.1 0.5 0
             rFoot -0.1 0.09 0
              rMetatarsals -0.1 0.04 0.06
               rToe -0.1 0.02 0.1
         abdomenLower 0 1.0 0
          abdomenUpper 0 1.1 0
           chestLower 0 1.2 0
            chestUpper 0 1.3 0
             lCollar 0.04 1.43 0
              lShldrBend 0.18 1.43 0
               lShldrTwist 0.3 1.43 0
                lForearmBend 0.45 1.43 0
                 lForearmTwist 0.6 1.43 0
                  lHand 0.7 1.43 0
                   lThumb1 0.72 1.43 0.03
             rCollar -0.04 1.43 0
              rShldrBend -0.18 1.43 0
               rShldrTwist -0.3 1.43 0
                rForearmBend -0.45 1.43 0
                 rForearmTwist -0.6 1.43 0
                  rHand -0.7 1.43 0
             neckLower 0 1.48 0
              neckUpper 0 1.53 0
               head 0 1.58 0
        """,
        """hips=hip,spine=abdomenLower,chest=chestUpper,neck=neckLower,left_hip=lThighBend,left_knee=lShin,left_shoulder=lShldrBend,
        left_elbow=lForearmBend,left_hand=lHand,left_toe=lToe""",
    ),
    # every bone twice or thrice; legs and spine meet only in a root on the ground
    "generated rigify": (
        """
        root 0 0 0
         MCH-torso.parent 0 0.95 0
          torso 0 0.95 0
           ORG-spine 0 0.95 0
            DEF-spine 0 0.95 0
             DEF-spine.001 0 1.1 0
              DEF-spine.002 0 1.2 0
               DEF-spine.003 0 1.3 0
                DEF-spine.004 0 1.45 0
                 DEF-spine.005 0 1.52 0
                  DEF-spine.006 0 1.6 0
                DEF-shoulder.L 0.05 1.43 0
                 DEF-upper_arm.L 0.18 1.43 0
                  DEF-upper_arm.L.001 0.3 1.43 0
                   DEF-forearm.L 0.45 1.43 0
                    DEF-forearm.L.001 0.58 1.43 0
                     DEF-hand.L 0.7 1.43 0
                DEF-shoulder.R -0.05 1.43 0
                 DEF-upper_arm.R -0.18 1.43 0
                  DEF-upper_arm.R.001 -0.3 1.43 0
                   DEF-forearm.R -0.45 1.43 0
                    DEF-forearm.R.001 -0.58 1.43 0
                     DEF-hand.R -0.7 1.43 0
         MCH-thigh_parent.L 0.1 0.92 0
          thigh_fk.L 0.1 0.92 0
          ORG-thigh.L 0.1 0.92 0
           DEF-thigh.L 0.1 0.92 0
            DEF-thigh.L.001 0.1 0.7 0
             DEF-shin.L 0.1 0.5 0
              DEF-shin.L.001 0.1 0.3 0
               DEF-foot.L 0.1 0.09 0
                DEF-toe.L 0.1 0.02 0.1
         foot_ik.L 0.1 0.09 0
         MCH-thigh_parent.R -0.1 0.92 0
          ORG-thigh.R -0.1 0.92 0
           DEF-thigh.R -0.1 0.92 0
            DEF-thigh.R.001 -0.1 0.7 0
             DEF-shin.R -0.1 0.5 0
              DEF-shin.R.001 -0.1 0.3 0
               DEF-foot.R -0.1 0.09 0
                DEF-toe.R -0.1 0.02 0.1
        """,
        """hips=DEF-spine,spine=DEF-spine.001,chest=DEF-spine.003,neck=DEF-spine.004,head=DEF-spine.006,left_hip=DEF-thigh.L,
        left_knee=DEF-shin.L,left_elbow=DEF-forearm.L,left_foot=DEF-foot.L,right_hand=DEF-hand.R""",
    ),
    # the mannequin of Unreal 5: twist, corrective and metacarpal bones beside the chain, handles below the root
    "unreal mannequin": (
        """
        root 0 0 0
         pelvis 0 0.95 0
          spine_01 0 1 0
           spine_02 0 1.1 0
            spine_03 0 1.2 0
             spine_04 0 1.28 0
              spine_05 0 1.35 0
               neck_01 0 1.5 0
                neck_02 0 1.55 0
                 head 0 1.6 0
               clavicle_l 0.04 1.45 0
                upperarm_l 0.18 1.45 0
                 upperarm_twist_01_l 0.3 1.45 0
                 upperarm_twist_02_l 0.35 1.45 0
                 lowerarm_l 0.45 1.45 0
                  lowerarm_twist_02_l 0.5 1.45 0
                  lowerarm_twist_01_l 0.6 1.45 0
                  hand_l 0.7 1.45 0
                   index_metacarpal_l 0.73 1.45 0.02
                    index_01_l 0.78 1.45 0.02
                   thumb_01_l 0.72 1.45 0.04
                 upperarm_correctiveRoot_l 0.2 1.45 0
               clavicle_r -0.04 1.45 0
                upperarm_r -0.18 1.45 0
                 upperarm_twist_01_r -0.3 1.45 0
                 upperarm_twist_02_r -0.35 1.45 0
                 lowerarm_r -0.45 1.45 0
                  lowerarm_twist_02_r -0.5 1.45 0
                  lowerarm_twist_01_r -0.6 1.45 0
                  hand_r -0.7 1.45 0
                   index_metacarpal_r -0.73 1.45 0.02
                    index_01_r -0.78 1.45 0.02
                   thumb_01_r -0.72 1.45 0.04
                 upperarm_correctiveRoot_r -0.2 1.45 0
          thigh_l 0.1 0.92 0
           calf_l 0.1 0.5 0.02
            calf_twist_02_l 0.1 0.4 0
            calf_twist_01_l 0.1 0.2 0
            foot_l 0.1 0.09 0
             ball_l 0.1 0.02 0.12
           thigh_twist_01_l 0.1 0.7 0
           thigh_twist_02_l 0.1 0.6 0
          thigh_r -0.1 0.92 0
           calf_r -0.1 0.5 0.02
            calf_twist_02_r -0.1 0.4 0
            calf_twist_01_r -0.1 0.2 0
            foot_r -0.1 0.09 0
             ball_r -0.1 0.02 0.12
           thigh_twist_01_r -0.1 0.7 0
           thigh_twist_02_r -0.1 0.6 0
         ik_foot_root 0 0 0
          ik_foot_l 0.1 0.09 0
          ik_foot_r -0.1 0.09 0
         ik_hand_root 0 0 0
          ik_hand_gun -0.7 1.45 0
           ik_hand_l 0.7 1.45 0
           ik_hand_r -0.7 1.45 0
         interaction 0 0 0
         center_of_mass 0 0 0
        """,
        """hips=pelvis,spine=spine_01,chest=spine_05,neck=neck_01,head=head,left_collar=clavicle_l,left_shoulder=upperarm_l,left_elbow=lowerarm_l,
        left_hand=hand_l,left_hip=thigh_l,left_knee=calf_l,left_foot=foot_l,left_toe=ball_l,right_hand=hand_r,right_foot=foot_r""",
    ),
    # a whole VRoid figure: hair, skirt, bust and eyes have bones of their own
    "vroid figure": (
        """
        Root 0 0 0
         J_Bip_C_Hips 0 0.95 0
          J_Bip_C_Spine 0 1.05 0
           J_Bip_C_Chest 0 1.18 0
            J_Bip_C_UpperChest 0 1.3 0
             J_Sec_L_Bust1 0.05 1.35 0.1
             J_Sec_R_Bust1 -0.05 1.35 0.1
             J_Bip_C_Neck 0 1.5 0
              J_Bip_C_Head 0 1.6 0
               J_Adj_L_FaceEye 0.03 1.7 0.1
               J_Adj_R_FaceEye -0.03 1.7 0.1
               J_Sec_Hair1_01 0 1.7 -0.1
             J_Bip_L_Shoulder 0.04 1.45 0
              J_Bip_L_UpperArm 0.18 1.45 0
               J_Bip_L_LowerArm 0.45 1.45 0
                J_Bip_L_Hand 0.7 1.45 0
                 J_Bip_L_Index1 0.78 1.45 0.03
                 J_Bip_L_Thumb1 0.72 1.45 0.04
               J_Sec_L_TopsUpperArmInside_01 0.3 1.4 0
             J_Bip_R_Shoulder -0.04 1.45 0
              J_Bip_R_UpperArm -0.18 1.45 0
               J_Bip_R_LowerArm -0.45 1.45 0
                J_Bip_R_Hand -0.7 1.45 0
                 J_Bip_R_Index1 -0.78 1.45 0.03
                 J_Bip_R_Thumb1 -0.72 1.45 0.04
               J_Sec_R_TopsUpperArmInside_01 -0.3 1.4 0
          J_Bip_L_UpperLeg 0.1 0.92 0
           J_Bip_L_LowerLeg 0.1 0.5 0.02
            J_Bip_L_Foot 0.1 0.09 0
             J_Bip_L_ToeBase 0.1 0.02 0.12
           J_Sec_L_SkirtFront_01 0.1 0.8 0.1
          J_Bip_R_UpperLeg -0.1 0.92 0
           J_Bip_R_LowerLeg -0.1 0.5 0.02
            J_Bip_R_Foot -0.1 0.09 0
             J_Bip_R_ToeBase -0.1 0.02 0.12
           J_Sec_R_SkirtFront_01 -0.1 0.8 0.1
        """,
        """hips=J_Bip_C_Hips,spine=J_Bip_C_Spine,chest=J_Bip_C_UpperChest,neck=J_Bip_C_Neck,head=J_Bip_C_Head,left_collar=J_Bip_L_Shoulder,
        left_shoulder=J_Bip_L_UpperArm,left_elbow=J_Bip_L_LowerArm,left_hand=J_Bip_L_Hand,left_hip=J_Bip_L_UpperLeg,left_foot=J_Bip_L_Foot""",
    ),
    # the CMU database as it was captured (ASF): hips and collars begin in the middle, a hand hangs below the wrist
    "acclaim": (
        """
        root 0 0.95 0
         lhipjoint 0 0.95 0
          lfemur 0.1 0.9 0
           ltibia 0.15 0.5 0
            lfoot 0.2 0.09 0
             ltoes 0.2 0.03 0.12
         rhipjoint 0 0.95 0
          rfemur -0.1 0.9 0
           rtibia -0.15 0.5 0
            rfoot -0.2 0.09 0
             rtoes -0.2 0.03 0.12
         lowerback 0 0.96 0
          upperback 0 1.06 0
           thorax 0 1.17 0
            lowerneck 0 1.3 0
             upperneck 0 1.38 0
              head 0 1.45 0
            lclavicle 0 1.25 0
             lhumerus 0.18 1.3 0
              lradius 0.45 1.3 0
               lwrist 0.65 1.3 0
                lhand 0.7 1.3 0
                 lfingers 0.75 1.3 0
                lthumb 0.7 1.3 0.03
            rclavicle 0 1.25 0
             rhumerus -0.18 1.3 0
              rradius -0.45 1.3 0
               rwrist -0.65 1.3 0
                rhand -0.7 1.3 0
                 rfingers -0.75 1.3 0
                rthumb -0.7 1.3 0.03
        """,
        """hips=root,spine=lowerback,chest=thorax,neck=lowerneck,head=head,left_collar=lclavicle,left_shoulder=lhumerus,left_elbow=lradius,
        left_hand=lwrist,left_hip=lfemur,left_knee=ltibia,left_foot=lfoot,left_toe=ltoes,right_collar=rclavicle""",
    ),
    # one link per hinge, as robot descriptions have it
    "humanoid robot": (
        """
        pelvis 0 0.8 0
         left_hip_yaw_link 0.09 0.75 0
          left_hip_roll_link 0.09 0.75 0
           left_hip_pitch_link 0.1 0.7 0
            left_knee_link 0.1 0.4 0
             left_ankle_pitch_link 0.1 0.08 0
              left_ankle_roll_link 0.1 0.06 0
         right_hip_yaw_link -0.09 0.75 0
          right_hip_roll_link -0.09 0.75 0
           right_hip_pitch_link -0.1 0.7 0
            right_knee_link -0.1 0.4 0
             right_ankle_pitch_link -0.1 0.08 0
              right_ankle_roll_link -0.1 0.06 0
         waist_yaw_link 0 0.85 0
          torso_link 0 0.9 0
           left_shoulder_pitch_link 0.1 1.2 0
            left_shoulder_roll_link 0.15 1.2 0
             left_shoulder_yaw_link 0.17 1.1 0
              left_elbow_link 0.17 1.0 0
               left_wrist_roll_link 0.17 1.0 0.1
                left_wrist_yaw_link 0.17 1.0 0.15
                 left_rubber_hand 0.17 1.0 0.2
           right_shoulder_pitch_link -0.1 1.2 0
            right_shoulder_roll_link -0.15 1.2 0
             right_shoulder_yaw_link -0.17 1.1 0
              right_elbow_link -0.17 1.0 0
               right_wrist_roll_link -0.17 1.0 0.1
                right_wrist_yaw_link -0.17 1.0 0.15
                 right_rubber_hand -0.17 1.0 0.2
        """,
        """hips=pelvis,spine=waist_yaw_link,chest=torso_link,left_hip=left_hip_yaw_link,left_knee=left_knee_link,left_foot=left_ankle_roll_link,
        left_shoulder=left_shoulder_pitch_link,left_elbow=left_elbow_link,left_hand=left_wrist_yaw_link""",
    ),
    # four legs; the feet are known only as handles, of which one hangs on the root
    "dog": (
        """
        Back 0 1.0 -0.4
         Torso 0 1.0 0
          Torso2 0 1.0 0.3
           Neck1 0 1.1 0.5
            Head 0 1.3 0.7
           FrontShoulder.L 0.07 0.9 0.3
            FrontUpperLeg.L 0.15 0.9 0.3
             FrontLowerLeg.L 0.15 0.5 0.3
              IKFrontLeg.L 0.15 0.05 0.3
           FrontShoulder.R -0.07 0.9 0.3
            FrontUpperLeg.R -0.15 0.9 0.3
             FrontLowerLeg.R -0.15 0.5 0.3
              IKFrontLeg.R -0.15 0.05 0.3
         BackUpperLeg.L 0.15 0.9 -0.4
          BackLowerLeg.L 0.15 0.5 -0.5
         BackUpperLeg.R -0.15 0.9 -0.4
          BackLowerLeg.R -0.15 0.5 -0.5
           IKBackLeg.R -0.15 0.05 -0.4
         IKBackLeg.L 0.15 0.05 -0.4
          FFB.L 0.15 0.01 -0.3
         Tail1 0 1.0 -0.6
         PoleTargetBack.L 0.15 0.5 2.0
         PoleTargetBack.R -0.15 0.5 2.0
        """,
        """hips=Back,spine=Torso,chest=Torso2,neck=Neck1,head=Head,left_hip=BackUpperLeg.L,left_knee=BackLowerLeg.L,left_foot=IKBackLeg.L,
        left_toe=FFB.L,right_foot=IKBackLeg.R,right_collar=FrontShoulder.R,right_shoulder=FrontUpperLeg.R,right_elbow=FrontLowerLeg.R,
        right_hand=IKFrontLeg.R,left_hand=IKFrontLeg.L""",
    ),
    # the hock of a walker: three bones in the leg, the knee is the first joint that bends forwards
    "mech": (
        """
        Body 0 2.7 0.9
         Torso 0 2.4 0.2
          Chest 0 3.4 -0.2
           Neck 0 4.4 -0.2
            Head 0 4.9 -0.1
         UpperLeg.L 1.0 2.7 -0.1
          MidLeg.L 1.0 1.8 1.0
           LowerLeg.L 1.0 1.2 -0.6
            FootBack.L 1.0 0.1 0.9
            Foot.L 1.0 0.1 0.9
         UpperLeg.R -1.0 2.7 -0.1
          MidLeg.R -1.0 1.8 1.0
           LowerLeg.R -1.0 1.2 -0.6
            FootBack.R -1.0 0.1 0.9
         PoleTarget.L 0.7 2.2 5.9
         Foot.R -1.0 0.1 0.9
        """,
        "hips=Body,spine=Torso,chest=Chest,left_hip=UpperLeg.L,left_knee=MidLeg.L,left_foot=Foot.L,right_foot=Foot.R",
    ),
    # hands that are only fingers, all from one point
    "fingers": (
        """
        Hips 0 0.95 0
         Chest 0 1.2 0
          UpperArm.L 0.2 1.4 0
           LowerArm.L 0.45 1.4 0
            Pinky1.L 0.7 1.4 0
             Pinky2.L 0.8 1.4 0
            Middle1.L 0.7 1.4 0
            Thumb1.L 0.7 1.4 0
          UpperArm.R -0.2 1.4 0
           LowerArm.R -0.45 1.4 0
            Middle1.R -0.7 1.4 0
            Thumb1.R -0.6 1.4 0.2
         UpperLeg.L 0.1 0.9 0
          LowerLeg.L 0.1 0.5 0
           Foot.L 0.1 0.1 0
         UpperLeg.R -0.1 0.9 0
          LowerLeg.R -0.1 0.5 0
           Foot.R -0.1 0.1 0
        """,
        "hips=Hips,chest=Chest,left_elbow=LowerArm.L,left_hand=Middle1.L,right_elbow=LowerArm.R,right_hand=none",
    ),
}

# What the characters of the shared folder should give, at least
LEG = "left_hip=UpperLeg.L left_knee=LowerLeg.L left_foot=Foot.L right_foot=Foot.R"
EXPECTED = {
    "humanoids/Man_CasualHoodie": f"hips=Body spine=Abdomen chest=Chest left_collar=Shoulder.L left_hand=Wrist.L {LEG}",
    "humanoids/Man_Spacesuit": f"hips=Body head=Head right_hand=Wrist.R {LEG}",
    "humanoids/Woman_Casual": f"hips=Body head=Head right_hand=Wrist.R {LEG}",
    "humanoids/Cyberpunk_Character": f"hips=Body left_hand=Hand.L {LEG}",
    "humanoids/Astronaut_FinnTheFrog": f"hips=Body chest=Torso left_hand=Middle1.L {LEG}",
    "humanoids/Astronaut_RaeTheRedPanda": f"hips=Body chest=Torso {LEG}",
    "humanoids/Enemy_Large": f"hips=Body chest=Torso {LEG}",
    "humanoids/KayKit_Knight": "hips=hips head=head left_hand=wrist.l left_foot=foot.l right_toe=toes.r left_knee=lowerleg.l",
    "humanoids/KayKit_Mage": "hips=hips head=head left_hand=wrist.l left_foot=foot.l right_toe=toes.r left_knee=lowerleg.l",
    "humanoids/Mannequin_F": "hips=pelvis chest=spine_03 left_collar=clavicle_l left_hand=hand_l left_toe=ball_l",
    "humanoids/Mech_George": "hips=Body chest=Chest left_hip=UpperLeg.L left_knee=MidLeg.L left_foot=Foot.L",
    "humanoids/Mech_Leela": "hips=Body head=Head left_hip=UpperLeg.L left_knee=MidLeg.L left_foot=Foot.L",
    "khronos/RiggedFigure": "hips=torso_joint_1 chest=torso_joint_3 left_hand=arm_joint_L_3 left_foot=leg_joint_L_3 left_toe=leg_joint_L_5",
    "khronos/Fox_khronos": "hips=b_Hip_01 left_elbow=b_LeftForeArm_010 left_foot=b_LeftFoot01_017 right_hip=b_RightLeg01_019",
    "animals/Wolf": "hips=Back left_shoulder=FrontUpperLeg.L left_hip=BackLeg.L left_foot=IKBackLeg.L left_toe=FFB.L left_hand=IKFrontLeg.L",
    "animals/Horse": "hips=Back left_knee=BackUpperLeg.L head=Head",
    "dinosaurs/Velociraptor": "hips=Body left_hip=BackUpLeg.L left_knee=BackLowLeg.L left_foot=BackFoot.L left_hand=FrontFoot.L",
}
WITHOUT_LEGS = ("Bat", "Chicken", "Dolphin", "Manta_ray", "Shark", "Snake", "Wasp", "Whale", "YellowDragon")
