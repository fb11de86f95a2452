"""Sentences and motions in one space: which motion does a sentence mean, and how far apart are two sets of motions?"""
